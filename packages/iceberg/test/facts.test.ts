import { expect, test } from 'vitest'
import { tableFacts } from '../src/index.ts'
import { bed, entriesOf, field } from './write/bed.ts'

const { newTable } = bed()

test('the facts of a table are counted from its manifests', async () => {
  const table = await newTable({
    schema: { fields: [field(1, 'id', { type: 'int' }), field(2, 'p', { type: 'string' })] },
    partitionSpec: { fields: [{ fieldId: 1000, sourceId: 2, name: 'p', transform: { name: 'identity' } }] },
  })
  const empty = await tableFacts(table.loaded)
  expect(empty).toMatchObject({ dataFiles: { files: 0 }, snapshots: { count: 0, oldestMs: undefined } })
  for (let n = 0; n < 3; n += 1) await table.append([{ id: n, p: 'a' }])
  await table.append([{ id: 9, p: 'b c' }])
  const [first] = (await entriesOf(table)).filter((e) => e.file.partition[0] === 'a')
  await table.deletePositions(new Map([[first?.file.filePath ?? '', [0]]]))
  await table.deleteEqual(['id', 'p'], [{ id: 9, p: 'b c' }])
  await table.createTag('kept')
  const facts = await tableFacts(table.loaded, { nowMs: table.metadata.lastUpdatedMs + 5000 })
  const files = (await entriesOf(table)).map((entry) => entry.file)
  const bytes = files.filter((f) => f.content === 'data').reduce((sum, file) => sum + file.fileSizeInBytes, 0)
  expect(facts.dataFiles).toMatchObject({ files: 4, records: 4, bytes, small: 4, smallBytes: bytes })
  expect(facts.dataFiles.histogram[0]).toEqual({ belowBytes: 1024 ** 2, files: 4, bytes })
  expect(facts.dataFiles.histogram.reduce((sum, step) => sum + step.files, 0)).toBe(4)
  expect(facts.deleteFiles).toMatchObject({
    files: 2,
    positionFiles: 1,
    positionDeletes: 1,
    equalityFiles: 1,
    equalityDeletes: 1,
    vectors: 0,
  })
  expect(facts.snapshots).toMatchObject({ count: 6, branches: 1, tags: 1 })
  expect(facts.snapshots.oldestMs).toBe(table.metadata.snapshots[0]?.timestampMs)
  // Four of data and two of deletes; each kind could be one.
  expect(facts.manifests).toMatchObject({ count: 6, ofDeletes: 2, small: 6, mergeable: 4 })
  expect(facts.partitions).toMatchObject({ count: 2, exact: true })
  expect(facts.partitions.mostFragmented[0]).toMatchObject({
    partition: 'p=a',
    files: 3,
    smallFiles: 3,
    deleteFiles: 1,
  })
  expect(facts.partitions.mostFragmented[1]).toMatchObject({ partition: 'p=b+c', files: 1, deleteFiles: 1 })
  expect(facts.metadata.logEntries).toBe(7)
  expect(facts.metadata.oldestAgeMs).toBeGreaterThanOrEqual(5000)
  const large = await tableFacts(table.loaded, { targetFileBytes: 10, maxPartitions: 1, partitions: 1 })
  expect(large).toMatchObject({ dataFiles: { small: 0 }, partitions: { count: 1, exact: false } })
})

test('the facts of a branch that is not there are refused', async () => {
  const table = await newTable({ schema: { fields: [field(1, 'id', { type: 'int' })] } })
  await expect(tableFacts(table.loaded, { branch: 'nowhere' })).rejects.toMatchObject({ code: 'ref_invalid' })
})

test('vectors are counted one by one, also when they share a file', async () => {
  const table = await newTable({ schema: { fields: [field(1, 'id', { type: 'int' })] }, formatVersion: 3 })
  await table.append([{ id: 1 }, { id: 2 }, { id: 3 }], { maxRowsPerFile: 1 })
  await table.deletePositions(new Map((await entriesOf(table)).map((e) => [e.file.filePath, [0]])))
  const { deleteFiles } = await tableFacts(table.loaded)
  expect(deleteFiles).toMatchObject({ files: 3, vectors: 3, vectorDeletes: 3, positionFiles: 0 })
})
