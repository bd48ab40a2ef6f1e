import { describe, expect, test } from 'vitest'
import {
  executeExpireSnapshots,
  expireSnapshots,
  IcebergError,
  openTable,
  planExpireSnapshots,
  type Catalog,
  type ExpireSnapshotsOptions,
  type ExpireSnapshotsRun,
  type FolderStorage,
} from '../../src/index.ts'
import { Fault, withMember, type FaultMode } from '../commit/faults.ts'
import {
  append,
  catalogOn,
  contentFile,
  contentOf,
  copyOf,
  dataPath,
  dayMs,
  faultyCatalog,
  lake,
  reachableOf,
  sorted,
  type Lake,
} from './lake.ts'

const pause = async (): Promise<void> => {}
/** Long after everything that a test does. */
const later = (): Date => new Date(Date.now() + 30 * dayMs)

async function expire(
  { table, catalog }: Lake,
  options: ExpireSnapshotsOptions = {},
  run: Partial<ExpireSnapshotsRun> = {},
) {
  await table.refresh()
  const result = await expireSnapshots(table.loaded, { now: later(), ...options }, { catalog, pause, ...run })
  await table.refresh()
  return result
}

/** Nothing is there that nothing reaches, and everything that is reached is there. */
async function expectTidy(made: Lake): Promise<void> {
  await made.table.refresh()
  expect(contentOf(made)).toEqual(sorted(await reachableOf(made.table.loaded)))
}

async function expectReadable(made: Lake): Promise<void> {
  await made.table.refresh()
  for (const path of await reachableOf(made.table.loaded)) expect(made.storage.files.has(path), path).toBe(true)
}

/** Three files appended, the first two removed again, one more appended. */
async function usual(properties: Record<string, string> = {}): Promise<Lake & { ids: bigint[] }> {
  const made = await lake({ properties })
  const ids: bigint[] = []
  for (const name of ['a', 'b', 'c']) ids.push((await append(made, name)).snapshotId)
  const gone = await made.table.deleteFiles([dataPath(made.table, 'a'), dataPath(made.table, 'b')])
  ids.push(gone?.snapshotId ?? 0n, (await append(made, 'd')).snapshotId)
  await made.other.refresh()
  return { ...made, ids }
}

describe('an expiry', () => {
  test('removes the files that only expired snapshots reach, and then finds nothing to do', async () => {
    const made = await usual()
    const plan = await planExpireSnapshots(made.table.loaded, { now: later() })
    expect(plan.files).toMatchObject({ data: { files: 2, bytes: 8 }, 'manifest-list': { files: 4 } })
    expect(JSON.parse(JSON.stringify(plan))).toEqual(plan)
    const { catalog, table } = made
    const result = await executeExpireSnapshots(table.loaded, plan, { catalog })
    expect(result).toMatchObject({
      deletedDataFilesCount: 2,
      deletedManifestListsCount: 4,
      deletedManifestFilesCount: plan.files?.manifest?.files,
      expiredSnapshotIds: made.ids.slice(0, 4).map(String),
      failedDeletes: [],
    })
    await expectTidy(made)
    const again = await planExpireSnapshots(table.loaded, { now: later() })
    expect(again).toMatchObject({ expired: [], removedRefs: [], files: {}, pendingLists: [] })
    expect(await expire(made)).toMatchObject({ expiredSnapshotIds: [], deletedManifestListsCount: 0 })
  })

  test('removes a file whose deletion is all that the head says of it', async () => {
    const made = await lake()
    await append(made, 'a')
    await append(made, 'b')
    await made.table.deleteFiles([dataPath(made.table, 'a')])
    expect(await expire(made)).toMatchObject({ deletedDataFilesCount: 1 })
    await expectTidy(made)
  })

  test('removes many snapshots in chunks, each a commit', async () => {
    const made = await usual()
    let commits = 0
    const guard = async (): Promise<void> => void (commits += 1)
    await expire(made, {}, { guard, snapshotsPerCommit: 2 })
    expect(commits).toBe(2)
    expect(made.table.metadata.snapshots.map(({ snapshotId }) => snapshotId)).toEqual(made.ids.slice(4))
    await expectTidy(made)
  })

  test('keeps what tags, branches and their settings keep, and removes refs that are too old', async () => {
    const made = await usual()
    const { table, ids } = made
    await table.createTag('t', { snapshotId: ids[0] ?? 0n })
    await table.createTag('old', { snapshotId: ids[1] ?? 0n, maxRefAgeMs: 1n })
    await table.createBranch('b', { snapshotId: ids[3] ?? 0n, minSnapshotsToKeep: 2 })
    const result = await expire(made)
    expect(result).toMatchObject({ removedRefs: ['old'], expiredSnapshotIds: [String(ids[1])] })
    expect([...table.metadata.refs.keys()]).toEqual(['main', 't', 'b'])
    await expectTidy(made)
  })

  test('keeps a Puffin file that still holds a live vector', async () => {
    const made = await lake({ formatVersion: 3 })
    const { table, storage } = made
    await append(made, 'a')
    await append(made, 'b')
    await table.deletePositions(
      new Map([
        [dataPath(table, 'a'), [0]],
        [dataPath(table, 'b'), [0]],
      ]),
    )
    const puffins = contentOf(made).filter((path) => path.endsWith('.puffin'))
    expect(puffins).toHaveLength(1)
    // The vector of b stays in the same Puffin file.
    await table.deleteFiles([dataPath(table, 'a')])
    const result = await expire(made)
    expect(result).toMatchObject({ deletedDataFilesCount: 1, deletedPositionDeleteFilesCount: 0 })
    expect(storage.files.has(puffins[0] ?? '')).toBe(true)
    await expectTidy(made)
  })

  test.each([false, true])('removes statistics of the snapshots that go, and unused metadata: %s', async (clean) => {
    const made = await usual()
    const { table, storage, catalog, ids } = made
    const statistics = (snapshotId: bigint) => ({
      snapshotId,
      statisticsPath: `${table.metadata.location}/metadata/${snapshotId}.stats`,
      fileSizeInBytes: 3n,
      fileFooterSizeInBytes: 1n,
      blobMetadata: [],
    })
    for (const id of [ids[0] ?? 0n, ids[4] ?? 0n]) {
      await storage.write(statistics(id).statisticsPath, Buffer.from('abc'))
      await table.refresh()
      await catalog.commit(table.loaded, {
        requirements: [],
        updates: [{ action: 'set-statistics', statistics: statistics(id) }],
      })
    }
    const options = { cleanExpiredMetadata: clean }
    expect(await expire(made, options)).toMatchObject({ deletedStatisticsFilesCount: 1 })
    expect(table.metadata.statistics.map(({ snapshotId }) => snapshotId)).toEqual([ids[4]])
    await expectTidy(made)
  })

  test('keeps the schema with a dropped column that rows are deleted by', async () => {
    const made = await usual()
    const { table } = made
    await table.updateSchema([{ change: 'add', name: 'x', type: { type: 'int' } }])
    const { lastColumnId } = table.metadata
    const equality = { content: 'equality-deletes', equalityIds: [lastColumnId], sortOrderId: 0 } as const
    await table.appendFiles([contentFile(dataPath(table, 'keys'), equality)])
    await table.updateSchema([{ change: 'drop', column: 'x' }])
    for (const name of ['e', 'f']) await append(made, name)
    await expire(made, { cleanExpiredMetadata: true })
    expect(table.metadata.snapshots).toHaveLength(1)
    expect(table.metadata.schemas.some(({ fields }) => fields.some(({ id }) => id === lastColumnId))).toBe(true)
  })

  test('removes schemas and specs that nothing uses, when asked', async () => {
    const made = await usual()
    const { table } = made
    await table.updateSchema([{ change: 'add', name: 'x', type: { type: 'int' } }])
    await table.updateSchema([{ change: 'add', name: 'y', type: { type: 'int' } }])
    await append(made, 'e')
    expect(await expire(made)).toMatchObject({ removedRefs: [] })
    expect(table.metadata.schemas).toHaveLength(3)
    await expire(made, { cleanExpiredMetadata: true })
    expect(table.metadata.schemas.map(({ schemaId }) => schemaId)).toEqual([table.metadata.currentSchemaId])
    const again = await planExpireSnapshots(table.loaded, { now: later(), cleanExpiredMetadata: true })
    expect(again.unused).toEqual({ schemaIds: [], specIds: [] })
  })

  test('leaves files outside the table alone unless told as Spark does', async () => {
    const made = await lake()
    const { table, storage } = made
    const outside = 's3://bucket/elsewhere/x.parquet'
    await storage.write(outside, Buffer.from('file'))
    await table.appendFiles([contentFile(outside)])
    await table.deleteFiles([outside])
    await append(made, 'a')
    const plan = await planExpireSnapshots(table.loaded, { now: later() })
    expect(plan).toMatchObject({ outside: { files: 1, bytes: 4 } })
    const unreached = await planExpireSnapshots(table.loaded, { now: later(), deleteOutsideLocation: true })
    expect(unreached).toMatchObject({ outside: { files: 0 }, files: { data: { files: 1 } } })
    expect(await expire(made)).toMatchObject({ outside: { files: 1 }, deletedDataFilesCount: 0 })
    expect(storage.files.has(outside)).toBe(true)
  })

  test('reports files that could not be deleted, and the next run deletes them', async () => {
    const made = await usual()
    const stuck = dataPath(made.table, 'a')
    const storage: FolderStorage = {
      ...made.storage,
      delete: async (paths) => ({
        ...(await made.storage.delete(paths.filter((path) => path !== stuck))),
        failed: paths.includes(stuck) ? [{ location: stuck, error: new Error('it is stuck') }] : [],
      }),
    }
    const result = await expire({ ...made, catalog: catalogOn(storage), table: await reopened(made, storage) })
    expect(result).toMatchObject({ deletedDataFilesCount: 1, failedDeletes: [{ path: stuck, error: 'it is stuck' }] })
    expect(await expire(made)).toMatchObject({ deletedDataFilesCount: 1, finishedLists: 1, failedDeletes: [] })
    await expectTidy(made)
  })
})

async function reopened({ table }: Lake, storage: FolderStorage) {
  return await openTable(catalogOn(storage), table.loaded.identifier)
}

describe('snapshots by which writers find their progress', () => {
  const writers: Record<string, Record<string, string>> = {
    Flink: { 'flink.job-id': 'j', 'flink.operator-id': 'o', 'flink.max-committed-checkpoint-id': '7' },
    'Kafka Connect': { 'kafka.connect.offsets.control.group': '{"0":5}' },
    'Spark streaming': { 'spark.sql.streaming.queryId': 'q', 'spark.sql.streaming.epochId': '3' },
  }
  test.each(Object.entries(writers))('are kept with the chain down to them: %s', async (_, summary) => {
    const made = await lake()
    const ids: bigint[] = []
    for (const [name, own] of [['a', summary], ['b', summary], ['c'], ['d'], ['e']] as const) {
      ids.push((await append(made, name, own === undefined ? {} : { summary: own })).snapshotId)
    }
    const soon = new Date(Date.now() + 6 * dayMs)
    expect(await expire(made, { now: soon })).toMatchObject({ expiredSnapshotIds: [String(ids[0])] })
    // Walked as the writer walks: from the head, from parent to parent.
    const { snapshots, currentSnapshotId } = made.table.metadata
    let at = snapshots.find(({ snapshotId }) => snapshotId === currentSnapshotId)
    while (at !== undefined && at.snapshotId !== ids[1]) {
      const parent = at.parentSnapshotId
      at = snapshots.find(({ snapshotId }) => snapshotId === parent)
    }
    expect(at?.summary).toMatchObject(summary)
    await expectTidy(made)
    // The writer has been silent for more than the 7 days.
    expect(await expire(made)).toMatchObject({ expiredSnapshotIds: ids.slice(1, 4).map(String) })
  })

  test('cannot be named to go', async () => {
    const made = await lake()
    const { snapshotId } = await append(made, 'a', { summary: writers['Flink'] ?? {} })
    await append(made, 'b')
    const named = planExpireSnapshots(made.table.loaded, { snapshotIds: [snapshotId] })
    await expect(named).rejects.toMatchObject({ code: 'action_refused', details: { reason: 'snapshot_held' } })
    const free = await planExpireSnapshots(made.table.loaded, { snapshotIds: [snapshotId], writerProgressMs: 0 })
    expect(free.expired).toMatchObject([{ snapshotId: String(snapshotId), reason: 'named' }])
  })
})

describe('an expiry refuses', () => {
  test('a table whose gc.enabled is false', async () => {
    const made = await usual({ 'gc.enabled': 'false' })
    const refused = { code: 'action_refused', details: { reason: 'gc_disabled' } }
    await expect(planExpireSnapshots(made.table.loaded)).rejects.toMatchObject(refused)
    await made.table.setProperties({ 'gc.enabled': 'true' })
    const plan = await planExpireSnapshots(made.table.loaded, { now: later() })
    await made.table.setProperties({ 'gc.enabled': 'false' })
    await expect(executeExpireSnapshots(made.table.loaded, plan, { catalog: made.catalog })).rejects.toMatchObject(
      refused,
    )
  })

  test('to keep nothing, and to expire the head of a ref', async () => {
    const { table, ids } = await usual()
    const reason = async (options: ExpireSnapshotsOptions): Promise<unknown> =>
      await planExpireSnapshots(table.loaded, options).catch((error: IcebergError) => error.details['reason'])
    expect(await reason({ retainLast: 0 })).toBe('options_invalid')
    expect(await reason({ retainLast: 1.5 })).toBe('options_invalid')
    expect(await reason({ olderThan: new Date(Number.NaN) })).toBe('options_invalid')
    expect(await reason({ writerProgressMs: Number.POSITIVE_INFINITY })).toBe('options_invalid')
    expect(await reason({ snapshotIds: [ids[4] ?? 0n] })).toBe('snapshot_held')
    await table.createTag('t', { snapshotId: ids[0] ?? 0n })
    expect(await reason({ snapshotIds: [ids[0] ?? 0n] })).toBe('snapshot_held')
  })

  test('another table of the same name', async () => {
    const made = await usual()
    const plan = await planExpireSnapshots(made.table.loaded, { now: later() })
    const { identifier } = made.table.loaded
    await made.catalog.dropTable(identifier, { purge: true })
    await made.catalog.createTable(identifier, { schema: { fields: [] } })
    const executed = executeExpireSnapshots(made.table.loaded, plan, { catalog: made.catalog })
    await expect(executed).rejects.toMatchObject({ code: 'action_refused', details: { reason: 'other_table' } })
  })
})

describe('what others do between the plan and the commit is kept', () => {
  /** Runs an expiry, with `meanwhile` done once immediately before its first commit. */
  async function expireWith(made: Lake, meanwhile: () => Promise<unknown>) {
    let done = false
    const guard = async (): Promise<void> => {
      if (done) return
      done = true
      await made.other.refresh()
      await meanwhile()
    }
    const result = await expire(made, {}, { guard })
    expect(done).toBe(true)
    await expectTidy(made)
    return result
  }

  test('a tag on an expiring snapshot', async () => {
    const made = await usual()
    const id = made.ids[1] ?? 0n
    const result = await expireWith(made, () => made.other.createTag('mine', { snapshotId: id }))
    expect(result.notExpiredSnapshotIds).toEqual([String(id)])
    expect(made.table.metadata.refs.get('mine')?.snapshotId).toBe(id)
  })

  test('a rollback to an expiring snapshot', async () => {
    const made = await usual()
    const id = made.ids[2] ?? 0n
    const result = await expireWith(made, () => made.other.rollbackTo(id))
    expect(made.table.metadata.currentSnapshotId).toBe(id)
    expect(result.expiredSnapshotIds).not.toContain(String(id))
  })

  test('a branch on an expiring snapshot, with a commit on it', async () => {
    const made = await usual()
    const id = made.ids[1] ?? 0n
    await expireWith(made, async () => {
      await made.other.createBranch('b', { snapshotId: id })
      await append({ ...made, table: made.other }, 'on-b', { branch: 'b' })
    })
    const head = made.table.metadata.refs.get('b')?.snapshotId
    expect(made.table.metadata.snapshots.map(({ snapshotId }) => snapshotId)).toContain(head)
  })

  test('a file of an expiring snapshot that is added again', async () => {
    const made = await usual()
    const path = dataPath(made.table, 'a')
    await expireWith(made, () => made.other.appendFiles([contentFile(path)]))
    expect(made.storage.files.has(path)).toBe(true)
  })

  test('a tag between plan and execution, in a catalog that drops refs without a word', async () => {
    const made = await usual()
    const id = made.ids[1] ?? 0n
    const plan = await planExpireSnapshots(made.table.loaded, { now: later() })
    await made.other.createTag('mine', { snapshotId: id })
    const requests: unknown[] = []
    const watched = withMember(made.catalog, 'commit', async (table, request) => {
      requests.push(...request.requirements)
      return await made.catalog.commit(table, request)
    })
    await executeExpireSnapshots(made.table.loaded, plan, { catalog: watched })
    expect(requests).toContainEqual({ type: 'assert-ref-snapshot-id', ref: 'mine', snapshotId: id })
    expect(requests).toContainEqual({ type: 'assert-ref-snapshot-id', ref: 'main', snapshotId: made.ids[4] })
    await expectTidy(made)
    expect(made.table.metadata.refs.has('mine')).toBe(true)
  })
})

test('a file that is added again after the commit and before the deletes stays', async () => {
  const made = await usual()
  const path = dataPath(made.table, 'a')
  const racing: Catalog = withMember(made.catalog, 'commit', async (table, request) => {
    const result = await made.catalog.commit(table, request)
    await made.other.refresh()
    await made.other.appendFiles([contentFile(path)])
    return result
  })
  await expire({ ...made, catalog: racing })
  expect(made.storage.files.has(path)).toBe(true)
  await expectTidy(made)
})

test('a file that is added again between two batches of deletes stays', async () => {
  const made = await usual()
  const path = dataPath(made.table, 'b')
  let batches = 0
  const storage: FolderStorage = {
    ...made.storage,
    delete: async (paths) => {
      batches += 1
      await made.other.refresh()
      if (batches === 1) await made.other.appendFiles([contentFile(path)])
      return await made.storage.delete(paths)
    },
  }
  const catalog = catalogOn(storage)
  const plan = await planExpireSnapshots(made.table.loaded, { now: later() })
  const table = await catalog.loadTable(made.table.loaded.identifier)
  await executeExpireSnapshots(table, plan, { catalog, maxConcurrentDeletes: 1, deleteBatchFiles: 1 })
  expect(batches).toBeGreaterThan(2)
  await expectTidy(made)
})

test('nothing is deleted when the commit is refused, and no list is left', async () => {
  const made = await usual()
  const before = contentOf(made)
  const guard = async (): Promise<void> => {
    expect(contentOf(made)).toEqual(expect.arrayContaining(before))
    expect(contentOf(made).filter((path) => path.includes('/_fencepost/deletions/'))).toHaveLength(1)
    throw new Error('the fence is lost')
  }
  await expect(expire(made, {}, { guard })).rejects.toMatchObject({ code: 'commit_refused' })
  expect(contentOf(made)).toEqual(before)
})

test('an expiry that is cancelled before its commit leaves nothing behind', async () => {
  const made = await usual()
  const before = contentOf(made)
  const stop = new AbortController()
  stop.abort(new Error('no longer wanted'))
  await expect(expire(made, {}, { signal: stop.signal })).rejects.toThrow('no longer wanted')
  expect(contentOf(made)).toEqual(before)
})

describe('an expiry that is interrupted is finished by the next one', () => {
  test('after the commit, before any delete', async () => {
    const made = await usual()
    const broken: FolderStorage = {
      ...made.storage,
      delete: async () => {
        throw new IcebergError('storage_failed', 'the process was killed')
      },
    }
    const catalog = catalogOn(broken)
    const table = await catalog.loadTable(made.table.loaded.identifier)
    const plan = await planExpireSnapshots(table, { now: later() })
    await expect(executeExpireSnapshots(table, plan, { catalog })).rejects.toThrow('killed')
    await made.table.refresh()
    expect(made.table.metadata.snapshots).toHaveLength(1)
    expect(await planExpireSnapshots(made.table.loaded)).toMatchObject({
      expired: [],
      pendingLists: [expect.anything()],
    })
    expect(await expire(made)).toMatchObject({ finishedLists: 1, deletedDataFilesCount: 2 })
    await expectTidy(made)
  })

  test('and a file of its list that the table has come to need since stays', async () => {
    const made = await usual()
    const broken: FolderStorage = {
      ...made.storage,
      delete: async () => {
        throw new IcebergError('storage_failed', 'the process was killed')
      },
    }
    const catalog = catalogOn(broken)
    const table = await catalog.loadTable(made.table.loaded.identifier)
    const plan = await planExpireSnapshots(table, { now: later() })
    await expect(executeExpireSnapshots(table, plan, { catalog })).rejects.toThrow('killed')
    await made.other.refresh()
    await made.other.appendFiles([contentFile(dataPath(made.table, 'a'))])
    expect(await expire(made)).toMatchObject({ finishedLists: 1, deletedDataFilesCount: 1 })
    await expectTidy(made)
  })

  test.each<FaultMode>(['before', 'after', 'down'])('at any call, failing %s it', { timeout: 60_000 }, async (mode) => {
    const { ids, ...origin } = await usual()
    for (let at = 1; ; at += 1) {
      const made = await copyOf(origin)
      const fault = new Fault(at, mode)
      const catalog = faultyCatalog(made.storage, fault)
      await catalog
        .loadTable(made.table.loaded.identifier)
        .then((table) => expireSnapshots(table, { now: later() }, { catalog, pause, snapshotsPerCommit: 3 }))
        .catch(() => {})
      await expectReadable(made)
      await expire(made)
      await expectTidy(made)
      expect(made.table.metadata.snapshots.map(({ snapshotId }) => snapshotId)).toEqual([ids[4]])
      if (!fault.reached) return
    }
  })
})
