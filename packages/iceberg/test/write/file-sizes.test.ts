import { createHash } from 'node:crypto'
import { expect, test } from 'vitest'
import type { ContentFile, NewTable, Table } from '../../src/index.ts'
import { bed, entriesOf, field } from './bed.ts'

const { newTable, rows } = bed()

const schema: NewTable['schema'] = {
  fields: [field(1, 'id', { type: 'long' }), field(2, 'p', { type: 'string' }), field(3, 's', { type: 'string' })],
}
const byP: NewTable['partitionSpec'] = {
  fields: [{ fieldId: 1000, sourceId: 2, name: 'p', transform: { name: 'identity' } }],
}
const noise = (n: number): string => createHash('sha256').update(String(n)).digest('hex')
const noisy = (count: number) =>
  Array.from({ length: count }, (_, n) => ({ id: BigInt(n), p: n % 3 === 0 ? 'a' : 'b', s: noise(n) }))
const filesOf = async (table: Table, content: ContentFile['content'] = 'data') =>
  (await entriesOf(table)).map((entry) => entry.file).filter((file) => file.content === content)
const ids = async (table: Table) => (await rows(table)).map((row) => Number(row['id']))

test('rows are divided into files of about the size that the table wants, in each partition', async () => {
  const target = 200_000
  const table = await newTable({
    schema,
    partitionSpec: byP,
    properties: { 'write.target-file-size-bytes': String(target) },
  })
  await table.updateSortOrder([{ column: 'id', direction: 'desc' }])
  await table.append(noisy(30_000))
  const files = await filesOf(table)
  expect(files.length).toBeGreaterThan(5)
  for (const file of files) {
    expect(file.fileSizeInBytes).toBeLessThan(target * 1.1)
    expect(file.fileSizeInBytes).toBeGreaterThan(target * 0.6)
    expect(file.sortOrderId).toBe(1)
  }
  for (const p of ['a', 'b']) {
    const read = (await rows(table)).filter((row) => row['p'] === p).map((row) => Number(row['id']))
    expect(read).toEqual(read.toSorted((x, y) => y - x))
  }
  expect((await ids(table)).toSorted((a, b) => a - b)).toEqual(noisy(30_000).map((_, n) => n))
})

test('it is the size of the file that counts: rows that become small stay together', async () => {
  const table = await newTable({ schema, properties: { 'write.target-file-size-bytes': '100000' } })
  const same = Array.from({ length: 20_000 }, (_, n) => ({ id: BigInt(n % 3), p: 'a', s: 'x'.repeat(30) }))
  await table.append(same)
  expect(await filesOf(table)).toHaveLength(1)
})

test('rows that grow wider get more files as they come', async () => {
  const target = 150_000
  const table = await newTable({ schema, properties: { 'write.target-file-size-bytes': String(target) } })
  const growing = Array.from({ length: 180_000 }, (_, n) => ({
    id: BigInt(n),
    p: 'a',
    s: n < 122_880 ? 'x' : noise(n),
  }))
  await table.append(growing)
  const files = await filesOf(table)
  expect(files.length).toBeGreaterThan(8)
  for (const file of files.slice(-4)) expect(file.fileSizeInBytes).toBeLessThan(target * 1.2)
  expect(files.reduce((sum, file) => sum + file.recordCount, 0)).toBe(180_000)
})

test.each(['-1', 'large'])('a size of %s is refused before anything is written', async (size) => {
  const table = await newTable({ schema, properties: { 'write.target-file-size-bytes': size } })
  await expect(table.append(noisy(1))).rejects.toMatchObject({ code: 'metadata_invalid' })
})

test('deletes have a size of their own', async () => {
  const table = await newTable({ schema, properties: { 'write.delete.target-file-size-bytes': '30000' } })
  await table.append(noisy(20_000))
  await table.deleteEqual(
    ['s'],
    noisy(10_000).map(({ s }) => ({ s })),
  )
  expect((await filesOf(table, 'equality-deletes')).length).toBeGreaterThan(5)
  const [data] = await filesOf(table)
  const positions = Array.from({ length: 9000 }, (_, n) => 10_000 + n)
  await table.deletePositions(new Map([[data?.filePath ?? '', positions]]))
  const byPosition = await filesOf(table, 'position-deletes')
  expect(byPosition.every((file) => file.referencedDataFile === data?.filePath)).toBe(true)
  expect((await ids(table)).toSorted((a, b) => a - b)).toEqual(Array.from({ length: 1000 }, (_, n) => 19_000 + n))
})

test('rows that are equal in the order are each written once, however many files there are', async () => {
  const table = await newTable({ schema })
  await table.updateSortOrder([{ column: 'p' }])
  const count = 30_000
  await table.append(noisy(count), { maxRowsPerFile: 700 })
  expect(await filesOf(table)).toHaveLength(Math.ceil(count / 700))
  expect(new Set(await ids(table)).size).toBe(count)
})
