import { expect, test } from 'vitest'
import { openTable, writeDataFiles, type NewTable, type Table } from '../../src/index.ts'
import { bed, entriesOf, field, filesBelow } from './bed.ts'

const { catalog, duckdb, newTable, rows } = bed()

const schema: NewTable['schema'] = {
  fields: [field(1, 'id', { type: 'long' }), field(2, 'p', { type: 'string' })],
}
const byP: NewTable['partitionSpec'] = {
  fields: [{ fieldId: 1000, sourceId: 2, name: 'p', transform: { name: 'identity' } }],
}
const ids = async (table: Table, options: Parameters<typeof rows>[1] = {}) =>
  (await rows(table, options)).map((row) => Number(row['id'])).toSorted((a, b) => a - b)
const numbered = (from: number, count: number, p = 'a') =>
  Array.from({ length: count }, (_, n) => ({ id: BigInt(from + n), p }))
const pathsOf = async (table: Table) =>
  (await entriesOf(table)).filter((e) => e.file.content === 'data').map((e) => e.file.filePath)

test.each(['file', 'partition'] as const)('v2 deletes rows by positions in files of a %s', async (granularity) => {
  const table = await newTable({ schema, partitionSpec: byP })
  await table.append([...numbered(0, 4), ...numbered(10, 4, 'b')], { maxRowsPerFile: 2 })
  const paths = await pathsOf(table)
  const snapshot = await table.deletePositions(new Map(paths.map((path) => [path, [1]])), { granularity })
  expect(await ids(table)).toEqual([0, 2, 10, 12])
  const files = granularity === 'file' ? 4 : 2
  expect(snapshot?.summary).toMatchObject({
    operation: 'delete',
    'added-delete-files': String(files),
    'added-position-delete-files': String(files),
    'added-position-deletes': '4',
    'total-position-deletes': '4',
    'total-records': '8',
    'total-data-files': '4',
  })
  const deletes = (await entriesOf(table)).filter((e) => e.file.content === 'position-deletes')
  expect(deletes.every((e) => (e.file.referencedDataFile !== undefined) === (granularity === 'file'))).toBe(true)
})

test('v3 keeps one deletion vector for a data file: the next one holds what the last one held', async () => {
  const table = await newTable({ schema, formatVersion: 3 })
  await table.append(numbered(0, 10))
  const [path = ''] = await pathsOf(table)
  await table.deletePositions(new Map([[path, [1, 2]]]))
  const snapshot = await table.deletePositions(new Map([[path, [2, 9]]]))
  expect(await ids(table)).toEqual([0, 3, 4, 5, 6, 7, 8])
  expect(snapshot?.summary).toMatchObject({
    'added-dvs': '1',
    'removed-dvs': '1',
    'added-position-deletes': '3',
    'removed-position-deletes': '2',
    'total-position-deletes': '3',
    'total-delete-files': '1',
  })
  const vectors = (await entriesOf(table, true)).filter((e) => e.file.content === 'position-deletes')
  expect(vectors.map((e) => e.status).toSorted()).toEqual(['added', 'deleted'])
  expect(await ids(table, { snapshotId: snapshot?.parentSnapshotId ?? 0n })).toEqual([0, 3, 4, 5, 6, 7, 8, 9])
})

test('after an upgrade a vector takes over the position deletes of its file', async () => {
  const table = await newTable({ schema, partitionSpec: byP })
  await table.append([...numbered(0, 4), ...numbered(10, 4)], { maxRowsPerFile: 4 })
  const [first = '', second = ''] = await pathsOf(table)
  await table.deletePositions(new Map([[first, [0]]]))
  const both = new Map([first, second].map((path) => [path, [1]]))
  await table.deletePositions(both, { granularity: 'partition' })
  await table.upgradeFormatVersion(3)
  expect(await ids(table)).toEqual([2, 3, 10, 12, 13])
  await table.deletePositions(new Map([[first, [2]]]))
  expect(await ids(table)).toEqual([3, 10, 12, 13])
  const deletes = (await entriesOf(table)).filter((e) => e.file.content === 'position-deletes')
  expect(deletes.map((e) => e.file.fileFormat).toSorted()).toEqual(['parquet', 'puffin'])
})

test('a file that is not there, and a row that is not in it, cannot be deleted from', async () => {
  const table = await newTable({ schema })
  await table.append(numbered(0, 2))
  const [path = ''] = await pathsOf(table)
  await expect(table.deletePositions(new Map([[path, [2]]]))).rejects.toMatchObject({ code: 'value_invalid' })
  await table.deleteFiles([path])
  await expect(table.deletePositions(new Map([[path, [0]]]))).rejects.toMatchObject({ code: 'file_not_live' })
  await expect(table.deleteFiles([path])).rejects.toMatchObject({ code: 'file_not_live' })
  const old = await newTable({ schema, formatVersion: 1 })
  await expect(old.deletePositions(new Map([[path, [0]]]))).rejects.toMatchObject({ code: 'metadata_unsupported' })
  await expect(old.deleteEqual(['id'], [{ id: 1n }])).rejects.toMatchObject({ code: 'metadata_unsupported' })
})

test.each([2, 3] as const)(
  'v%i deletes older rows that equal a key, null too, and not those of the commit',
  async (formatVersion) => {
    const table = await newTable({ schema, formatVersion })
    await table.append([...numbered(0, 3), { id: null, p: 'x' }])
    const snapshot = await table.deleteEqual(['id'], [{ id: 1n }, { id: null }, { id: 77n }], {
      append: numbered(1, 1, 'new'),
    })
    expect(await rows(table)).toEqual(
      expect.arrayContaining([
        { id: 0n, p: 'a' },
        { id: 1n, p: 'new' },
        { id: 2n, p: 'a' },
      ]),
    )
    expect(await rows(table)).toHaveLength(3)
    expect(snapshot?.summary).toMatchObject({
      operation: 'overwrite',
      'added-equality-delete-files': '1',
      'added-equality-deletes': '3',
      'total-equality-deletes': '3',
    })
    await table.append(numbered(77, 1))
    expect(await ids(table)).toEqual([0, 1, 2, 77])
  },
)

test('in a partitioned table keys must tell their partition', async () => {
  const table = await newTable({ schema, partitionSpec: byP })
  await table.append([...numbered(0, 2), ...numbered(0, 2, 'b')])
  await expect(table.deleteEqual(['id'], [{ id: 1n }])).rejects.toThrow('the columns do not tell the partition')
  await table.deleteEqual(['id', 'p'], [{ id: 1n, p: 'b' }])
  expect(await ids(table)).toEqual([0, 0, 1])
})

test('an overwrite replaces the table, partitions or files, and deletes of removed files go along', async () => {
  const table = await newTable({ schema, partitionSpec: byP, formatVersion: 3 })
  await table.append([...numbered(0, 2), ...numbered(10, 2, 'b')])
  for (const path of await pathsOf(table)) await table.deletePositions(new Map([[path, [0]]]))
  const byPartition = await table.overwrite(numbered(20, 2, 'b'), { replace: 'partitions' })
  expect(await ids(table)).toEqual([1, 20, 21])
  expect(byPartition?.summary).toMatchObject({
    operation: 'overwrite',
    'deleted-data-files': '1',
    'removed-dvs': '1',
    'total-delete-files': '1',
  })
  const path = (await pathsOf(table)).find((p) => p.includes('p=b')) ?? ''
  await table.overwrite(numbered(30, 1), { replace: { files: [path] } })
  expect(await ids(table)).toEqual([1, 30])
  const whole = await table.overwrite(numbered(40, 1))
  expect(await ids(table)).toEqual([40])
  expect(whole?.summary).toMatchObject({ 'total-records': '1', 'total-data-files': '1', 'total-delete-files': '0' })
  const emptied = await table.deleteFiles(() => true)
  expect(emptied?.summary).toMatchObject({ operation: 'delete', 'total-records': '0', 'total-files-size': '0' })
  expect(await ids(table)).toEqual([])
})

test('branches and tags are made, written to, moved and dropped', async () => {
  const table = await newTable({ schema })
  await expect(table.createBranch('x')).rejects.toMatchObject({ code: 'ref_invalid' })
  const first = await table.append(numbered(0, 1))
  await table.createTag('v1', { maxRefAgeMs: 1000n })
  await table.createBranch('work', { minSnapshotsToKeep: 3, maxSnapshotAgeMs: 5n })
  await table.append(numbered(1, 1), { branch: 'work' })
  expect(await ids(table)).toEqual([0])
  expect(await ids(table, { ref: 'work' })).toEqual([0, 1])
  expect(table.metadata.refs.get('work')).toMatchObject({ minSnapshotsToKeep: 3, maxSnapshotAgeMs: 5n })
  await table.append(numbered(2, 1))
  expect(await ids(table, { ref: 'v1' })).toEqual([0])
  await expect(table.append(numbered(3, 1), { branch: 'v1' })).rejects.toMatchObject({ code: 'ref_invalid' })
  await expect(table.append(numbered(3, 1), { branch: 'nope' })).rejects.toMatchObject({ code: 'ref_invalid' })
  await expect(table.createTag('v1')).rejects.toMatchObject({ code: 'ref_invalid' })
  await table.createTag('v1', { replace: true })
  expect(await ids(table, { ref: 'v1' })).toEqual([0, 2])
  await table.rollbackTo(first?.snapshotId ?? 0n)
  expect(await ids(table)).toEqual([0])
  const work = table.metadata.refs.get('work')?.snapshotId ?? 0n
  await expect(table.rollbackTo(work)).rejects.toMatchObject({ code: 'ref_invalid' })
  await table.setSnapshot(work)
  expect(await ids(table)).toEqual([0, 1])
  await table.dropRef('work')
  await table.dropRef('v1')
  expect([...table.metadata.refs.keys()]).toEqual(['main'])
  await expect(table.dropRef('main')).rejects.toMatchObject({ code: 'ref_invalid' })
})

test('rows from before and after a change of schema and of partitions are read together', async () => {
  const table = await newTable({ schema, partitionSpec: byP, formatVersion: 3 })
  await table.append(numbered(0, 1))
  await table.updateSchema([
    { change: 'rename', column: 'p', to: 'q' },
    { change: 'add', name: 'n', type: { type: 'int' }, default: 9 },
  ])
  await table.updatePartitionSpec([
    { change: 'remove', name: 'p' },
    { change: 'add', column: 'id', transform: { name: 'bucket', buckets: 2 } },
  ])
  await table.append([{ id: 1n, q: 'b' }])
  expect(await rows(table)).toEqual(
    expect.arrayContaining([
      { id: 0n, q: 'a', n: 9 },
      { id: 1n, q: 'b', n: 9 },
    ]),
  )
  await expect(table.deleteEqual(['id'], [{ id: 0n }])).rejects.toThrow('files of several partition specs')
})

test('v3 gives every row an id once, and keeps it when manifests are written anew', async () => {
  const table = await newTable({ schema, formatVersion: 3 })
  await table.append(numbered(0, 3))
  await table.append(numbered(10, 2))
  const before = await rows(table, { metadataColumns: ['_row_id'] })
  expect(before.map((row) => Number(row['_row_id'])).toSorted((a, b) => a - b)).toEqual([0, 1, 2, 3, 4])
  const [path = ''] = await pathsOf(table)
  await table.deleteFiles([path])
  await table.append(numbered(20, 1))
  expect(table.metadata.nextRowId).toBe(6n)
  await table.append(numbered(30, 4), { maxRowsPerFile: 2 })
  const rowIds = async () =>
    new Map((await rows(table, { metadataColumns: ['_row_id'] })).map((row) => [row['id'], row['_row_id']]))
  const given = await rowIds()
  await table.deleteFiles((entry) => entry.file.firstRowId === 6n)
  given.delete(30n)
  given.delete(31n)
  expect(await rowIds()).toEqual(given)
  expect(table.metadata.nextRowId).toBe(10n)
  expect(table.metadata.snapshots.at(-1)).toMatchObject({ firstRowId: 10n, addedRows: 0n })
})

test('a commit that fails for good leaves no file behind', async () => {
  const table = await newTable({ schema, properties: { 'commit.retry.num-retries': '0' } })
  await table.append(numbered(0, 1))
  const list = () => filesBelow(table)
  const before = await list()
  const guard = async (): Promise<void> => {
    throw new Error('not now')
  }
  await expect(table.append(numbered(1, 1), { guard })).rejects.toMatchObject({ code: 'commit_refused' })
  await expect(table.append(numbered(1, 1), { branch: 'nope' })).rejects.toMatchObject({ code: 'ref_invalid' })
  const [path = ''] = await pathsOf(table)
  await expect(table.deletePositions(new Map([[path, [0]]]), { guard })).rejects.toMatchObject({
    code: 'commit_refused',
  })
  await expect(table.deleteEqual(['id'], [{ id: 0n }], { append: [{ id: 'x' }] })).rejects.toMatchObject({
    code: 'value_invalid',
  })
  expect(await list()).toEqual(before)
})

test('writers at the same time lose no row and no delete', async () => {
  const table = await newTable({
    schema,
    formatVersion: 3,
    properties: {
      'commit.retry.num-retries': '100',
      'commit.retry.min-wait-ms': '1',
      'commit.retry.max-wait-ms': '20',
    },
  })
  await table.append(numbered(0, 10))
  const [path = ''] = await pathsOf(table)
  await Promise.all(
    [0, 1, 2].map(async (writer) => {
      const own = await openTable(catalog(), table.loaded.identifier)
      for (let n = 0; n < 3; n += 1) {
        await own.append(numbered(100 * (writer + 1) + n, 1))
        await own.deletePositions(new Map([[path, [writer * 3 + n]]]))
      }
      await own.close()
    }),
  )
  await table.refresh()
  expect(await ids(table)).toEqual([9, 100, 101, 102, 200, 201, 202, 300, 301, 302])
})

test('whatever fails while a commit is made, nothing is left of it', async () => {
  const table = await newTable({ schema })
  await table.append(numbered(0, 2))
  const [path = ''] = await pathsOf(table)
  await table.setProperties({ 'write.manifest.compression-codec': 'zstd' })
  const before = await filesBelow(table)
  await expect(table.deletePositions(new Map([[path, [0]]]))).rejects.toMatchObject({ code: 'metadata_unsupported' })
  await expect(table.append(numbered(1, 1))).rejects.toMatchObject({ code: 'metadata_unsupported' })
  await expect(table.deleteEqual(['id'], [{ id: 1n }], { append: [{ id: 'no number' }] })).rejects.toMatchObject({
    code: 'value_invalid',
  })
  expect(await filesBelow(table)).toEqual(before)
})

test('a commit that is tried again deletes what it was given, also what can be read only once', async () => {
  const table = await newTable({ schema })
  await table.append(numbered(0, 4))
  const [path = ''] = await pathsOf(table)
  const other = await openTable(catalog(), table.loaded.identifier, { duckDb: duckdb() })
  let first = true
  const guard = async (): Promise<void> => {
    if (first) await other.append(numbered(10, 1), { guard: async () => void (first = false) })
  }
  await table.deletePositions(new Map([[path, [1, 2].values()]]), { guard, pause: async () => undefined })
  expect(await ids(table)).toEqual([0, 3, 10])
})

test('keys that no longer reach all rows are not committed', async () => {
  const table = await newTable({ schema, partitionSpec: byP })
  await table.append(numbered(0, 2))
  const stale = await openTable(catalog(), table.loaded.identifier, { duckDb: duckdb() })
  await table.updatePartitionSpec([{ change: 'remove', name: 'p' }])
  await table.append(numbered(0, 1))
  const before = await filesBelow(table)
  await expect(stale.deleteEqual(['id', 'p'], [{ id: 0n, p: 'a' }])).rejects.toMatchObject({ code: 'commit_conflict' })
  expect(await filesBelow(table)).toEqual(before)
  await stale.refresh()
  await stale.deleteEqual(['id', 'p'], [{ id: 0n, p: 'a' }])
  await table.refresh()
  expect(await ids(table)).toEqual([1])
})

test('a summary says what was done, whatever is put into it', async () => {
  const table = await newTable({ schema })
  const snapshot = await table.append(numbered(0, 1), { summary: { operation: 'replace', 'my-key': 'x' } })
  expect(snapshot?.summary).toMatchObject({ operation: 'append', 'my-key': 'x' })
})

test('a table whose list of sort orders leaves out the unsorted one can be written to', async () => {
  const table = await newTable({ schema })
  const loaded = { ...table.loaded, metadata: { ...table.metadata, sortOrders: [] } }
  expect(await writeDataFiles(duckdb(), loaded, numbered(0, 1))).toMatchObject([{ recordCount: 1, sortOrderId: 0 }])
})

test('a removed data file takes along the deletes that are known to be for it by equal path bounds', async () => {
  const table = await newTable({ schema })
  const first = await table.append(numbered(0, 3))
  const [path = ''] = await pathsOf(table)
  await table.deletePositions(new Map([[path, [1]]]))
  const deletes = (await entriesOf(table)).map((entry) => entry.file).filter((file) => file.content !== 'data')
  await table.setSnapshot(first?.snapshotId ?? 0n)
  await table.appendFiles(deletes.map(({ referencedDataFile: _named, ...file }) => file))
  await table.append(numbered(10, 1))
  expect((await entriesOf(table)).map((entry) => entry.file.content).toSorted()).toEqual([
    'data',
    'data',
    'position-deletes',
  ])
  await table.deleteFiles([path])
  expect((await entriesOf(table)).map((entry) => entry.file.content)).toEqual(['data'])
})
