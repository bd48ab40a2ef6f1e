import { expect, test } from 'vitest'
import { manifestsOf, type FormatVersion, type ManifestFile, type NewTable, type Table } from '../../src/index.ts'
import { bed, entriesOf, field, filesBelow } from './bed.ts'

const { newTable, rows } = bed()

const schema: NewTable['schema'] = {
  fields: [field(1, 'id', { type: 'long' }), field(2, 'p', { type: 'string' })],
}
const byP: NewTable['partitionSpec'] = {
  fields: [{ fieldId: 1000, sourceId: 2, name: 'p', transform: { name: 'identity' } }],
}
const merging = (minCount: number) => ({ 'commit.manifest.min-count-to-merge': String(minCount) })
const one = (id: number, p = 'a') => [{ id: BigInt(id), p }]
const ids = async (table: Table) => (await rows(table)).map((row) => Number(row['id'])).toSorted((a, b) => a - b)
const headOf = ({ metadata }: Table) =>
  metadata.snapshots.find((snapshot) => snapshot.snapshotId === metadata.currentSnapshotId)
async function manifests(table: Table, content: ManifestFile['content'] = 'data'): Promise<ManifestFile[]> {
  const head = headOf(table)
  const all = head === undefined ? [] : await manifestsOf(table.loaded, head)
  return all.filter((manifest) => manifest.content === content)
}

test.each([1, 2, 3] as const)(
  'in v%i an append puts small manifests together, and files stay what they were',
  async (formatVersion: FormatVersion) => {
    const table = await newTable({ schema, formatVersion, properties: merging(4) })
    for (const id of [0, 1, 2]) await table.append(one(id))
    expect(await manifests(table)).toHaveLength(3)
    const about = async () =>
      new Map(
        (await entriesOf(table)).map(({ file, snapshotId, sequenceNumber, fileSequenceNumber }) => [
          file.filePath,
          { snapshotId, sequenceNumber, fileSequenceNumber, firstRowId: file.firstRowId },
        ]),
      )
    const before = await about()
    const fourth = await table.append(one(3))
    const [merged, ...others] = await manifests(table)
    expect(others).toEqual([])
    expect(merged).toMatchObject({ addedFilesCount: 1, existingFilesCount: 3, deletedFilesCount: 0 })
    expect(merged).toMatchObject({
      sequenceNumber: fourth?.sequenceNumber,
      minSequenceNumber: formatVersion === 1 ? 0n : 1n,
      addedSnapshotId: fourth?.snapshotId,
    })
    expect(fourth?.summary).toMatchObject({
      'manifests-created': '1',
      'manifests-kept': '0',
      'manifests-replaced': '3',
      'added-data-files': '1',
      'total-data-files': '4',
    })
    const after = await about()
    for (const [path, was] of before) expect(after.get(path)).toEqual(was)
    expect((await entriesOf(table)).map((entry) => entry.status).toSorted()).toEqual([
      'added',
      'existing',
      'existing',
      'existing',
    ])
    expect(await ids(table)).toEqual([0, 1, 2, 3])
    // The manifest of the new file alone is not left behind: four of the appends, one that holds them.
    const avro = (await filesBelow(table)).filter((path) => /-m\d+\.avro$/.test(path))
    expect(avro).toHaveLength(4)
    await table.append(one(4))
    expect(await ids(table)).toEqual([0, 1, 2, 3, 4])
  },
)

test('rows keep their ids when manifests are merged, and new rows get ids of their own', async () => {
  const table = await newTable({ schema, formatVersion: 3, properties: merging(3) })
  const rowIds = async () =>
    new Map((await rows(table, { metadataColumns: ['_row_id'] })).map((row) => [row['id'], row['_row_id']]))
  for (let id = 0; id < 8; id += 1) {
    const before = await rowIds()
    const nextRowId = table.metadata.nextRowId
    await table.append(one(id))
    const after = await rowIds()
    for (const [row, was] of before) expect(after.get(row)).toBe(was)
    expect(after.get(BigInt(id))).toBeGreaterThanOrEqual(nextRowId)
    expect(new Set(after.values()).size).toBe(id + 1)
    expect(table.metadata.nextRowId).toBeGreaterThan(after.get(BigInt(id)) as bigint)
  }
})

test('files from before v3 get their row ids when their manifests are merged', async () => {
  const table = await newTable({ schema, properties: merging(3) })
  await table.append(one(0))
  await table.append(one(1))
  await table.upgradeFormatVersion(3)
  await table.append(one(2))
  expect(await manifests(table)).toHaveLength(1)
  const given = (await rows(table, { metadataColumns: ['_row_id'] })).map((row) => row['_row_id'])
  expect(new Set(given).size).toBe(3)
  expect(given).not.toContain(null)
})

test('deletes are merged apart from data, and what a commit removes stays as a tombstone', async () => {
  const table = await newTable({ schema, properties: merging(2) })
  await table.append([...one(0), ...one(1), ...one(2)])
  const [path = ''] = (await entriesOf(table)).map((entry) => entry.file.filePath)
  for (const position of [0, 1]) await table.deletePositions(new Map([[path, [position]]]))
  expect(await manifests(table, 'deletes')).toHaveLength(1)
  expect(await ids(table)).toEqual([2])
  await table.append(one(3))
  await table.deleteFiles([path])
  expect(await manifests(table)).toMatchObject([{ existingFilesCount: 1, deletedFilesCount: 1 }])
  const gone = (await entriesOf(table, true)).filter((entry) => entry.status === 'deleted')
  expect(gone.map((entry) => [entry.file.content, entry.snapshotId])).toEqual(
    expect.arrayContaining([['data', headOf(table)?.snapshotId]]),
  )
  await table.append(one(4))
  expect((await entriesOf(table, true)).filter((entry) => entry.file.filePath === path)).toEqual([])
  expect(await ids(table)).toEqual([3, 4])
})

test('manifests of different specs are never merged, and an older spec does not wait', async () => {
  const table = await newTable({ schema, partitionSpec: byP, properties: merging(100) })
  for (const id of [0, 1, 2]) await table.append(one(id))
  await table.updatePartitionSpec([{ change: 'add', column: 'id', transform: { name: 'bucket', buckets: 2 } }])
  await table.append(one(3))
  expect((await manifests(table)).map((m) => [m.partitionSpecId, m.existingFilesCount])).toEqual([
    [1, 0],
    [0, 3],
  ])
  expect(await ids(table)).toEqual([0, 1, 2, 3])
})

test('groups are no larger than the table wants, and full ones are left alone', async () => {
  const table = await newTable({ schema, properties: merging(2) })
  await table.append(one(0))
  const [first] = await manifests(table)
  const target = (first?.manifestLength ?? 0) * 2 + 200
  await table.setProperties({ 'commit.manifest.target-size-bytes': String(target) })
  for (const id of [1, 2, 3, 4, 5]) await table.append(one(id))
  const lengths = (await manifests(table)).map((manifest) => manifest.manifestLength)
  expect(lengths.length).toBeGreaterThan(1)
  for (const length of lengths) expect(length).toBeLessThanOrEqual(target)
  expect(await ids(table)).toEqual([0, 1, 2, 3, 4, 5])
})

test('merging can be turned off', async () => {
  const properties = { ...merging(2), 'commit.manifest-merge.enabled': 'false' }
  const table = await newTable({ schema, properties })
  for (const id of [0, 1, 2]) await table.append(one(id))
  expect(await manifests(table)).toHaveLength(3)
})
