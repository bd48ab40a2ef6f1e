import { describe, expect, test } from 'vitest'
import {
  manifestsOf,
  openTable,
  planRewriteDataFiles,
  readManifest,
  type NewTable,
  type Table,
} from '../../src/index.ts'
import { bed, field, filesBelow } from '../write/bed.ts'
import { before, dataFiles, rewrite } from './rewrite-bed.ts'

// Every test forces the order: another writer commits immediately before the commit of a rewrite, which was read and
// written by then.

const { catalog, newTable, rows, duckdb } = bed()

const schema: NewTable['schema'] = { fields: [field(1, 'id', { type: 'long' }), field(2, 'p', { type: 'string' })] }
const byP = {
  fields: [{ fieldId: 1000, sourceId: 2, name: 'p', transform: { name: 'identity' } }],
} as const
const quick = { 'commit.retry.min-wait-ms': '1', 'commit.retry.max-wait-ms': '2' }
const row = (id: number, p: string) => ({ id: BigInt(id), p })

/** Six files in each of two partitions, with ids from 0 and from 100. */
async function twoPartitions(formatVersion: 1 | 2 | 3): Promise<Table> {
  const table = await newTable({ schema, partitionSpec: byP, formatVersion, properties: quick })
  for (let n = 0; n < 6; n += 1) {
    await table.append([row(n * 2, 'a'), row(n * 2 + 1, 'a'), row(n + 100, 'b')])
  }
  return table
}

const other = (table: Table): Promise<Table> => openTable(catalog(), table.loaded.identifier, { duckDb: duckdb() })
const ids = async (table: Table): Promise<number[]> =>
  (await rows(table)).map(({ id }) => Number(id)).toSorted((a, b) => a - b)
const expectedIds = (without: readonly number[] = [], more: readonly number[] = []): number[] =>
  [...Array.from({ length: 12 }, (_, n) => n), ...Array.from({ length: 6 }, (_, n) => n + 100), ...more]
    .filter((id) => !without.includes(id))
    .toSorted((a, b) => a - b)

async function fileOf(table: Table, p: string, n = 0): Promise<string> {
  const files = (await dataFiles(table)).filter(({ file }) => file.partition[0] === p)
  return files[n]?.file.filePath ?? expect.fail('there is no such file')
}

/** Nothing is in the folder that no snapshot knows: what was written in vain is gone. */
async function expectNoLeftovers(table: Table): Promise<void> {
  const { metadata, storage } = table.loaded
  const known = new Set<string>()
  for (const snapshot of metadata.snapshots) {
    for (const manifest of await manifestsOf(table.loaded, snapshot)) {
      for (const { file } of readManifest(await storage.read(manifest.manifestPath), manifest)) known.add(file.filePath)
    }
  }
  expect(await filesBelow(table, `${metadata.location}/data`)).toEqual([...known].toSorted())
}

describe.each([1, 2, 3] as const)('beside writers of v%i', (formatVersion) => {
  test('rows that are appended meanwhile stay', async () => {
    const table = await twoPartitions(formatVersion)
    const writer = await other(table)
    const guard = before(1, () => writer.append([row(50, 'a')]))
    const { result } = await rewrite(catalog(), table, {}, { guard })
    expect(result).toMatchObject({ rewrittenDataFilesCount: 12, addedDataFilesCount: 2, unfinished: [] })
    expect(await ids(table)).toEqual(expectedIds([], [50]))
    expect(await dataFiles(table)).toHaveLength(3)
    await expectNoLeftovers(table)
  })

  test('a file that is removed meanwhile stays removed, and its group is rewritten without it', async () => {
    const table = await twoPartitions(formatVersion)
    const writer = await other(table)
    const gone = await fileOf(table, 'a', 2)
    const guard = before(1, () => writer.deleteFiles([gone]))
    const { result } = await rewrite(catalog(), table, {}, { guard })
    expect(result.rewrittenDataFilesCount).toBe(11)
    expect(result.snapshotIds).toHaveLength(2)
    const left = await ids(table)
    expect(left).toHaveLength(16)
    expect(await dataFiles(table)).toHaveLength(2)
    await expectNoLeftovers(table)
  })

  test('files that others have rewritten meanwhile are left to them', async () => {
    const table = await twoPartitions(formatVersion)
    const writer = await other(table)
    const guard = before(1, () => rewrite(catalog(), writer))
    const { result } = await rewrite(catalog(), table, {}, { guard })
    expect(result).toMatchObject({ rewrittenDataFilesCount: 0, addedDataFilesCount: 0, failedDataFilesCount: 0 })
    expect(result.unfinished.map(({ why, files }) => [why, files])).toEqual([
      ['gone', 6],
      ['gone', 6],
    ])
    expect(await ids(table)).toEqual(expectedIds())
    expect(await dataFiles(table)).toHaveLength(2)
    await expectNoLeftovers(table)
  })

  test('when the snapshot that was read is gone from the history, everything is read again', async () => {
    const table = await twoPartitions(formatVersion)
    const writer = await other(table)
    const start = table.metadata.currentSnapshotId ?? expect.fail()
    const earlier = table.metadata.snapshots.at(-2)?.snapshotId ?? expect.fail()
    const guard = before(1, async () => {
      await writer.rollbackTo(earlier)
      await writer.append([row(60, 'b')])
    })
    const { result } = await rewrite(catalog(), table, {}, { guard })
    expect(table.metadata.currentSnapshotId).not.toBe(start)
    expect(result.rewrittenDataFilesCount).toBe(10)
    expect(await ids(table)).toEqual(expectedIds([10, 11, 105], [60]))
  })
})

describe.each([2, 3] as const)('beside deletes of v%i', (formatVersion) => {
  test('rows that are deleted by key meanwhile stay deleted, without another rewrite', async () => {
    const table = await twoPartitions(formatVersion)
    const writer = await other(table)
    const guard = before(1, () => writer.deleteEqual(['p', 'id'], [row(3, 'a')], { append: [row(3, 'a')] }))
    const { result } = await rewrite(catalog(), table, {}, { guard })
    expect(result.snapshotIds).toHaveLength(1)
    expect(result.rewrittenDataFilesCount).toBe(12)
    expect(await ids(table)).toEqual(expectedIds())
    const last = await other(table)
    await last.deleteEqual(['p', 'id'], [row(4, 'a')])
    await table.refresh()
    expect(await ids(table)).toEqual(expectedIds([4]))
  })

  test('with the sequence number of the commit they are in the way of their group', async () => {
    const table = await twoPartitions(formatVersion)
    const writer = await other(table)
    const guard = before(1, () => writer.deleteEqual(['p', 'id'], [row(3, 'a')]))
    const options = { 'use-starting-sequence-number': false }
    const { result } = await rewrite(catalog(), table, { options }, { guard })
    expect(result.snapshotIds).toHaveLength(2)
    expect(result.rewrittenDataFilesCount).toBe(12)
    expect(await ids(table)).toEqual(expectedIds([3]))
    expect((await planRewriteDataFiles(table.loaded)).groups).toEqual([])
  })

  test.each(['file', 'partition'] as const)(
    'rows that are deleted by position of a %s meanwhile stay deleted, and only their group is read again',
    async (granularity) => {
      const table = await twoPartitions(formatVersion)
      const writer = await other(table)
      const paths = [await fileOf(table, 'a', 1), await fileOf(table, 'a', 4)]
      const deleted = new Map(paths.map((path) => [path, [1]]))
      const guard = before(1, () => writer.deletePositions(deleted, { granularity }))
      const { result } = await rewrite(catalog(), table, {}, { guard })
      expect(result).toMatchObject({ rewrittenDataFilesCount: 12, addedDataFilesCount: 2, failedDataFilesCount: 0 })
      expect(result.snapshotIds).toHaveLength(2)
      const left = await ids(table)
      expect(left).toHaveLength(16)
      expect(left.filter((id) => id >= 100)).toHaveLength(6)
      await table.refresh()
      for (const path of paths) expect((await dataFiles(table)).map(({ file }) => file.filePath)).not.toContain(path)
      await expectNoLeftovers(table)
    },
  )

  test('a group that is in conflict for the second time is halved, and given up in the end', async () => {
    const table = await twoPartitions(formatVersion)
    const writer = await other(table)
    const path = await fileOf(table, 'a', 0)
    const last = await fileOf(table, 'a', 5)
    let deletes = 0
    let hasWritten = false
    // New deletes of one file before every first try of a commit that would rewrite it.
    const guard = async (): Promise<void> => {
      await writer.refresh()
      const live = (await dataFiles(writer)).map(({ file }) => file.filePath)
      if (!hasWritten || !live.includes(path)) return
      hasWritten = false
      deletes += 1
      await writer.deletePositions(new Map([[path, [deletes % 2]]]))
    }
    const onProgress = (): void => void (hasWritten = true)
    const { result } = await rewrite(catalog(), table, {}, { guard, onProgress })
    expect(result.failedDataFilesCount).toBe(1)
    expect(result.unfinished.map(({ why }) => why)).toEqual(['conflict'])
    const live = (await dataFiles(table)).map(({ file }) => file.filePath)
    expect(live).toContain(path)
    expect(live).not.toContain(last)
    expect(await ids(table)).toEqual(expectedIds([10, 11]))
  })
})

test('a guard that refuses leaves the table and its folder as they were', async () => {
  const table = await twoPartitions(2)
  const files = await filesBelow(table, `${table.metadata.location}/data`)
  const head = table.metadata.currentSnapshotId
  const guard = async (): Promise<void> => {
    throw new Error('the lease is lost')
  }
  await expect(rewrite(catalog(), table, {}, { guard })).rejects.toMatchObject({ code: 'commit_refused' })
  expect(table.metadata.currentSnapshotId).toBe(head)
  expect(await filesBelow(table, `${table.metadata.location}/data`)).toEqual(files)
})

test('an action that is called off ends without a commit, and removes what it wrote', async () => {
  const table = await twoPartitions(2)
  const files = await filesBelow(table, `${table.metadata.location}/data`)
  const head = table.metadata.currentSnapshotId
  const stop = new AbortController()
  const onProgress = (): void => stop.abort(new Error('called off'))
  await expect(rewrite(catalog(), table, {}, { signal: stop.signal, onProgress })).rejects.toThrow('called off')
  expect(table.metadata.currentSnapshotId).toBe(head)
  expect(await filesBelow(table, `${table.metadata.location}/data`)).toEqual(files)
})

test('with partial progress groups are committed one by one, and a conflict of one does not undo the others', async () => {
  const table = await twoPartitions(2)
  const writer = await other(table)
  const path = await fileOf(table, 'a')
  const guard = before(1, () => writer.deletePositions(new Map([[path, [0]]])))
  const options = { 'partial-progress.enabled': true, 'max-concurrent-file-group-rewrites': 1 }
  const { result } = await rewrite(catalog(), table, { options }, { guard })
  expect(result.snapshotIds).toHaveLength(2)
  expect(result).toMatchObject({ rewrittenDataFilesCount: 12, addedDataFilesCount: 2, unfinished: [] })
  expect(await ids(table)).toHaveLength(17)
  const few = { 'partial-progress.enabled': true, 'partial-progress.max-commits': 1, 'rewrite-all': true }
  expect((await rewrite(catalog(), table, { options: few })).result.snapshotIds).toHaveLength(1)
})
