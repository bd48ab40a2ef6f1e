import { describe, expect, test } from 'vitest'
import {
  executeRewriteManifests,
  planRewriteManifests,
  type FormatVersion,
  type RewriteManifestsOptions,
  type Table,
} from '../../src/index.ts'
import { Fault, type FaultMode } from '../commit/faults.ts'
import { filesBelow } from '../write/bed.ts'
import { headOf, identities, liveIn, manifestsBed, manifestsIn, referredFiles, row } from './manifests-bed.ts'

const { newTable, catalogOn, rowsOf } = manifestsBed()
type Bed = Awaited<ReturnType<typeof newTable>>

/** Partitions that come in no order, so that every manifest has a piece of many. */
async function fill({ table }: Bed, appends = 6): Promise<void> {
  for (let n = 0; n < appends; n += 1) {
    const partitions = [['c', 1] as const, ['a', null] as const, [null, n] as const, ['b', n % 3] as const]
    await table.append(partitions.map(([p, q], index) => row(10 * n + index, p, q)))
  }
  if (table.metadata.formatVersion === 1) return
  for (const n of [0, 1, 2]) {
    const data = (await liveIn(table, headOf(table))).filter(({ file }) => file.content === 'data')
    await table.deletePositions(new Map(data.slice(n * 3, n * 3 + 2).map(({ file }) => [file.filePath, [0]])))
  }
}

async function rewrite({ table, catalog }: Pick<Bed, 'table' | 'catalog'>, options: RewriteManifestsOptions = {}) {
  const plan = await planRewriteManifests(table.loaded, options)
  const result = await executeRewriteManifests(table.loaded, plan, { catalog, summary: { 'job-id': '7' } })
  await table.refresh()
  return { plan, result }
}

const partitionsIn = async (table: Table): Promise<string[][]> => {
  const live = (await liveIn(table, headOf(table))).filter(({ file }) => file.content === 'data')
  const paths = [...new Set(live.map(({ manifestPath }) => manifestPath))]
  return paths.map((path) =>
    live.filter(({ manifestPath }) => manifestPath === path).map(({ file }) => file.partition.join('/')),
  )
}

describe.each([1, 2, 3] as FormatVersion[])('manifests of a v%i table', (formatVersion) => {
  test('are put together by partition, with every file as it was', async () => {
    const bed = await newTable({ formatVersion })
    await fill(bed)
    const { table } = bed
    const [before, rows, head] = [await identities(table), await rowsOf(table), headOf(table)]
    const [data, deletes] = [await manifestsIn(table), await manifestsIn(table, 'deletes')]
    const { plan, result } = await rewrite(bed)
    expect(JSON.parse(JSON.stringify(plan))).toEqual(plan)
    const kinds = deletes.length > 0 ? 2 : 1
    expect(result).toMatchObject({
      rewrittenManifestsCount: data.length + deletes.length,
      addedManifestsCount: kinds,
      snapshotId: String(headOf(table).snapshotId),
    })
    expect(result.bytesRead).toBeGreaterThan(result.bytesWritten)
    expect(await identities(table)).toEqual(before)
    expect(await rowsOf(table)).toEqual(rows)
    expect(await rowsOf(table, head.snapshotId)).toEqual(rows)
    const [partitions = []] = await partitionsIn(table)
    expect(partitions).toEqual(partitions.toSorted(byNullsFirst))
    const { summary = {} } = headOf(table)
    expect(summary).toMatchObject({
      operation: 'replace',
      'job-id': '7',
      'manifests-created': String(kinds),
      'manifests-kept': '0',
      'manifests-replaced': String(data.length + deletes.length),
      'entries-processed': String(before.length),
      'total-records': head.summary?.['total-records'],
      'total-data-files': head.summary?.['total-data-files'],
      'total-delete-files': head.summary?.['total-delete-files'],
    })
    expect((await planRewriteManifests(table.loaded)).groups).toEqual([])
    await table.append([row(500)])
    expect(await rowsOf(table)).toHaveLength(rows.length + 1)
  })

  test('are divided at the size the table wants, and then there is nothing left to do', async () => {
    const bed = await newTable({ formatVersion })
    await fill(bed)
    const { table } = bed
    const before = await identities(table)
    const [{ manifestLength } = expect.fail()] = await manifestsIn(table)
    for (const target of [1, manifestLength + 300, manifestLength * 2]) {
      await table.setProperties({ 'commit.manifest.target-size-bytes': String(target) })
      await rewrite(bed)
      expect((await planRewriteManifests(table.loaded)).groups).toEqual([])
      expect(await identities(table)).toEqual(before)
    }
    expect((await rewrite(bed)).result).toMatchObject({ rewrittenManifestsCount: 0, addedManifestsCount: 0 })
  })

  test('that another writer adds to meanwhile are rewritten once', async () => {
    const bed = await newTable({ formatVersion })
    await fill(bed)
    const { table, catalog } = bed
    const rows = await rowsOf(table)
    const plan = await planRewriteManifests(table.loaded)
    const other = await bed.other()
    let written: string[] = []
    let met = false
    const guard = async (): Promise<void> => {
      if (met) return
      met = true
      written = (await filesBelow(table)).filter((path) => path.includes('optimized-m-'))
      await other.append([row(900, 'z')])
    }
    const result = await executeRewriteManifests(table.loaded, plan, { catalog, guard })
    await table.refresh()
    const now = await manifestsIn(table)
    expect(now.map(({ manifestPath }) => manifestPath)).toEqual(expect.arrayContaining(written.slice(0, 1)))
    expect((await filesBelow(table)).filter((path) => path.includes('optimized-m-'))).toEqual(written)
    expect(result.addedManifestsCount).toBe(written.length)
    expect(await rowsOf(table)).toHaveLength(rows.length + 1)
    expect(now).toHaveLength(2)
    const known = await referredFiles(table)
    expect((await filesBelow(table)).filter((path) => path.endsWith('.avro') && !known.has(path))).toEqual([])
  })

  test('that are gone by the commit are not brought back', async () => {
    const bed = await newTable({ formatVersion })
    await fill(bed)
    const { table, catalog } = bed
    const plan = await planRewriteManifests(table.loaded)
    const other = await bed.other()
    const gone = (await liveIn(table, headOf(table))).find(({ file }) => file.content === 'data') ?? expect.fail()
    let met = false
    const guard = async (): Promise<void> => {
      if (met) return
      met = true
      await other.deleteFiles([gone.file.filePath])
    }
    const running = executeRewriteManifests(table.loaded, plan, { catalog, guard })
    await expect(running).rejects.toMatchObject({
      code: 'commit_conflict',
      details: { manifests: expect.arrayContaining([gone.manifestPath]) },
    })
    await table.refresh()
    expect((await identities(table)).join()).not.toContain(gone.file.filePath)
    const known = await referredFiles(table)
    expect((await filesBelow(table)).filter((path) => path.endsWith('.avro') && !known.has(path))).toEqual([])
    await expect(executeRewriteManifests(table.loaded, plan, { catalog })).rejects.toMatchObject({
      code: 'commit_conflict',
    })
    const rows = await rowsOf(table)
    await rewrite(bed)
    expect(await rowsOf(table)).toEqual(rows)
  })
})

const byNullsFirst = (a: string, b: string): number => {
  const parts = (text: string): string[] => text.split('/')
  const [[p = '', q = ''], [r = '', s = '']] = [parts(a), parts(b)]
  const order = (x: string, y: string): number => (x === y ? 0 : x < y ? -1 : 1)
  return order(p, r) || order(q, s)
}

test('files are ordered by the fields that are asked for', async () => {
  const bed = await newTable({})
  await fill(bed)
  const { plan } = await rewrite(bed, { sortBy: ['q'] })
  expect(plan.sortBy).toEqual(['q'])
  const [partitions = []] = await partitionsIn(bed.table)
  const qs = partitions.map((text) => text.split('/')[1] ?? '')
  expect(qs).toEqual(qs.toSorted())
  await expect(planRewriteManifests(bed.table.loaded, { sortBy: ['nope'] })).rejects.toMatchObject({
    code: 'value_invalid',
  })
})

test('manifests of other specs, and those that are not wanted, are left alone', async () => {
  const bed = await newTable({})
  await fill(bed, 3)
  const { table } = bed
  await table.updatePartitionSpec([{ change: 'remove', name: 'q' }])
  for (const id of [700, 701]) await table.append([row(id)])
  const old = (await manifestsIn(table)).filter(({ partitionSpecId }) => partitionSpecId === 0)
  const { plan } = await rewrite(bed)
  expect(plan.specId).toBe(1)
  expect(plan.leftOut).toContainEqual(
    expect.objectContaining({ content: 'data', why: 'other-spec', manifests: old.length }),
  )
  const paths = (await manifestsIn(table)).map(({ manifestPath }) => manifestPath)
  for (const { manifestPath } of old) expect(paths).toContain(manifestPath)
  const [kept = ''] = old.map(({ manifestPath }) => manifestPath)
  await rewrite(bed, { specId: 0, rewriteIf: ({ manifestPath }) => manifestPath !== kept })
  expect((await manifestsIn(table)).map(({ manifestPath }) => manifestPath)).toContain(kept)
  expect(await manifestsIn(table)).toHaveLength(3)
})

test.each([
  [1, 2],
  [2, 3],
] as const)('a table of v%i that is upgraded meanwhile stays as it is', async (from, to) => {
  const bed = await newTable({ formatVersion: from })
  await fill(bed)
  const { table, catalog } = bed
  const read = table.loaded
  const plan = await planRewriteManifests(read)
  const other = await bed.other()
  await other.upgradeFormatVersion(to)
  if (to === 3) await other.append([row(900, 'z')]) // gives row ids to the manifests, whose paths stay
  await table.refresh()
  const rows = await rowsOf(table)
  const before = await filesBelow(table)
  await expect(executeRewriteManifests(read, plan, { catalog })).rejects.toMatchObject({ code: 'commit_conflict' })
  await table.refresh()
  expect(await rowsOf(table)).toEqual(rows)
  expect(await filesBelow(table)).toEqual(before)
  await rewrite(bed)
  expect(await rowsOf(table)).toEqual(rows)
})

test('row ids stay, also of files from before v3', async () => {
  const bed = await newTable({ formatVersion: 2 })
  const { table } = bed
  for (const id of [0, 1, 2]) await table.append([row(id)])
  await table.upgradeFormatVersion(3)
  await rewrite(bed)
  const ids = await rowsOf(table)
  expect(new Set(ids.map((text) => text.split(' ')[3])).size).toBe(3)
  for (const id of [3, 4]) await table.append([row(id)])
  const before = await rowsOf(table)
  const { nextRowId } = table.metadata
  await rewrite(bed)
  expect(await rowsOf(table)).toEqual(before)
  expect(table.metadata.nextRowId).toBe(nextRowId)
})

test('a run that is called off leaves nothing behind', async () => {
  const bed = await newTable({})
  await fill(bed, 2)
  const { table, catalog } = bed
  const plan = await planRewriteManifests(table.loaded)
  const before = await filesBelow(table)
  const stop = new AbortController()
  const running = executeRewriteManifests(table.loaded, plan, {
    catalog,
    signal: stop.signal,
    onProgress: () => stop.abort(new Error('enough')),
  })
  await expect(running).rejects.toThrow('enough')
  expect(await filesBelow(table)).toEqual(before)
})

test('an empty table has nothing to do', async () => {
  const { table, catalog } = await newTable({})
  const plan = await planRewriteManifests(table.loaded)
  expect(plan.groups).toEqual([])
  expect(await executeRewriteManifests(table.loaded, plan, { catalog })).toMatchObject({ addedManifestsCount: 0 })
})

test('whatever call fails, the table is whole, and a second run finishes', { timeout: 60_000 }, async () => {
  const bed = await newTable({ formatVersion: 3, properties: { 'write.metadata.previous-versions-max': '10000' } })
  for (const id of [0, 1]) await bed.table.append([row(id)])
  const { table, catalog, storage } = bed
  const start = headOf(table).snapshotId
  const [rows, before] = [await rowsOf(table), await identities(table)]
  const attempt = async (at: number, mode: FaultMode): Promise<string[]> => {
    await table.setSnapshot(start)
    const fault = new Fault(at, mode)
    const faulty = catalogOn(storage, fault)
    const run = async (): Promise<void> => {
      const loaded = await faulty.loadTable(table.loaded.identifier)
      await executeRewriteManifests(loaded, await planRewriteManifests(loaded), { catalog: faulty })
    }
    await run().catch(() => {})
    await table.refresh()
    expect(await rowsOf(table)).toEqual(rows)
    for (const path of await referredFiles(table, [headOf(table)])) expect([...storage.files.keys()]).toContain(path)
    await rewrite({ table, catalog })
    expect(await identities(table)).toEqual(before)
    expect((await planRewriteManifests(table.loaded)).groups).toEqual([])
    return fault.names
  }
  const calls = await attempt(Number.POSITIVE_INFINITY, 'before')
  for (const [index, name] of calls.entries()) {
    await attempt(index + 1, 'before')
    if (name === 'write') await attempt(index + 1, 'after')
    if (index % 4 === 0) await attempt(index + 1, 'down')
  }
})
