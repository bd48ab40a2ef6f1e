import { describe, expect, test } from 'vitest'
import { buildSnapshot, commitTable, planRewriteDataFiles, type NewTable, type Table } from '../../src/index.ts'
import { onlyPath } from '../../src/snapshot/delete.ts'
import { writeEqualityDeletes } from '../../src/write/equality-deletes.ts'
import { bed, field } from '../write/bed.ts'
import { before, dataFiles, deleteFiles, rewrite } from './rewrite-bed.ts'

const { catalog, duckdb, newTable, rows } = bed()

const schema: NewTable['schema'] = {
  fields: [field(1, 'id', { type: 'long' }), field(2, 's', { type: 'string' }), field(3, 'x', { type: 'double' })],
}
const row = (id: number) => ({
  id: BigInt(id),
  s: ['b', 'a', null, 'ä'][id % 4] ?? null,
  x: (id * 7) % 5 === 0 ? -0 : id / 2,
})

async function shuffled(more: Partial<NewTable> = {}): Promise<Table> {
  const table = await newTable({ schema, formatVersion: 2, ...more })
  for (let n = 0; n < 6; n += 1) await table.append([0, 1, 2, 3].map((k) => row((k * 11 + n * 5) % 24)))
  return table
}
const sorted = (ids: readonly unknown[]): unknown[] => ids.toSorted((a, b) => Number(a) - Number(b))
const idsOf = async (table: Table): Promise<unknown[]> => (await rows(table)).map(({ id }) => id)

describe('rows are sorted', () => {
  test.each([
    ['id DESC', (list: { id: number }[]) => list.toSorted((a, b) => b.id - a.id)],
    [
      'truncate(10, id) ASC, id DESC',
      (list: { id: number }[]) => list.toSorted((a, b) => Math.floor(a.id / 10) - Math.floor(b.id / 10) || b.id - a.id),
    ],
  ] as const)('by %s', async (sortOrder, expected) => {
    const table = await shuffled()
    const idsBefore = sorted(await idsOf(table))
    const { plan, result } = await rewrite(catalog(), table, { sortOrder })
    expect(plan.settings.strategy).toBe('sort')
    expect(result).toMatchObject({ rewrittenDataFilesCount: 6, addedDataFilesCount: 1 })
    const after = (await idsOf(table)).map(Number)
    expect(sorted(after.map(BigInt))).toEqual(idsBefore)
    expect(after).toEqual(expected(after.map((id) => ({ id }))).map(({ id }) => id))
  })

  test('by the order of the table, whose id the files have', async () => {
    const table = await shuffled()
    await table.updateSortOrder([
      { column: 's' },
      { column: 'id', transform: { name: 'bucket', buckets: 4 } },
      { column: 'id' },
    ])
    const { result } = await rewrite(catalog(), table, { strategy: 'sort' })
    expect(result.addedDataFilesCount).toBe(1)
    const [file] = await dataFiles(table)
    expect(file?.file.sortOrderId).toBe(table.metadata.defaultSortOrderId)
    const texts = (await rows(table)).map(({ s }) => s)
    expect(texts.slice(0, 6)).toEqual(Array.from({ length: 6 }, () => null))
    expect(texts.slice(6, 12)).toEqual(Array.from({ length: 6 }, () => 'a'))
  })

  test('in the order of interleaved bits, in each partition of a fraction', async () => {
    const fields = [{ sourceId: 3, fieldId: 1000, name: 'x', transform: { name: 'identity' } as const }]
    const table = await newTable({ schema, formatVersion: 2 })
    for (const n of [0, 1, 2]) await table.append([0, 1, 2, 3].map((k) => ({ ...row(k + n), x: k % 2 === 0 ? -0 : 0 })))
    await table.updatePartitionSpec([{ change: 'add', column: 'x', transform: { name: 'identity' }, name: 'x' }])
    expect(table.metadata.partitionSpecs.at(-1)?.fields).toEqual(fields)
    const idsBefore = sorted(await idsOf(table))
    const options = { 'min-input-files': 2 }
    const { result } = await rewrite(catalog(), table, { sortOrder: 'zorder(id, x)', options })
    expect(result).toMatchObject({ rewrittenDataFilesCount: 3, addedDataFilesCount: 2, unfinished: [] })
    expect(sorted(await idsOf(table))).toEqual(idsBefore)
  })

  test('in the order of interleaved bits', async () => {
    const table = await newTable({ schema, formatVersion: 2 })
    // A grid: its z-order is known.
    for (let n = 0; n < 5; n += 1) {
      const cells = Array.from({ length: 16 }, (_, at) => at).filter((at) => at % 5 === n)
      await table.append(cells.map((at) => ({ id: BigInt(at % 4), s: null, x: Math.floor(at / 4) })))
    }
    const { plan, result } = await rewrite(catalog(), table, { sortOrder: 'zorder(id, x)' })
    expect(plan.settings.strategy).toBe('zorder')
    expect(result).toMatchObject({ rewrittenDataFilesCount: 5, addedDataFilesCount: 1, unfinished: [] })
    const cells = (await rows(table)).map(({ id, x }) => [Number(id), Number(x)] as const)
    const bits = (id: number, x: number): bigint => {
      const view = new DataView(new ArrayBuffer(16))
      view.setBigInt64(0, BigInt(id))
      view.setFloat64(8, x)
      const [a, b] = [view.getBigUint64(0) ^ (1n << 63n), view.getBigUint64(8) | (1n << 63n)]
      let word = 0n
      for (let bit = 63n; bit >= 0n; bit -= 1n) word = (word << 2n) | (((a >> bit) & 1n) << 1n) | ((b >> bit) & 1n)
      return word
    }
    const expected = cells.toSorted(([a, b], [c, d]) => (bits(a, b) < bits(c, d) ? -1 : 1))
    expect(cells).toEqual(expected)
    expect(new Set(cells.map(String)).size).toBe(16)
  })

  test.each([
    [{ strategy: 'binpack', sortOrder: 'id' }, 'takes no sort order'],
    [{ strategy: 'sort' }, 'has no sort order of its own'],
    [{ sortOrder: 'zorder(id), x' }, 'mixes a z-order'],
    [{ sortOrder: 'nothing' }, 'no column "nothing"'],
    [{ options: { 'target-file-size': 1 } }, 'Did you mean target-file-size-bytes?'],
    [{ options: { 'delete-ratio-threshold': '0' } }, 'above 0, at most 1'],
    [{ options: { 'output-spec-id': 7 } }, 'no partition spec 7'],
    [{ options: { 'target-file-size-bytes': 100, 'max-file-size-bytes': 50 } }, 'must be below max-file-size-bytes'],
  ] as const)('and a wrong request is refused: %j', async (request, message) => {
    const table = await newTable({ schema })
    await expect(planRewriteDataFiles(table.loaded, request)).rejects.toThrow(message)
  })
})

describe.each([2, 3] as const)('files of an older spec in v%i', (formatVersion) => {
  test('are moved to the partitions of the present one, with their deletes applied', async () => {
    const table = await shuffled({ formatVersion })
    const [first] = await dataFiles(table)
    await table.deletePositions(new Map([[first?.file.filePath ?? '', [0]]]))
    await table.updatePartitionSpec([
      { change: 'add', column: 's', transform: { name: 'identity' } },
      { change: 'add', column: 'id', transform: { name: 'bucket', buckets: 3 } },
    ])
    const options =
      formatVersion === 3 ? { metadataColumns: ['_row_id', '_last_updated_sequence_number'] as const } : {}
    const exact = (_: string, value: unknown): unknown =>
      typeof value === 'bigint' ? `${value}n` : Object.is(value, -0) ? '-0' : value
    const texts = async () => (await rows(table, options)).map((each) => JSON.stringify(each, exact)).toSorted()
    const rowsBefore = await texts()
    const { plan, result } = await rewrite(catalog(), table)
    expect(plan.groups.map(({ partition, files }) => [partition, files.length])).toEqual([[undefined, 6]])
    expect(result).toMatchObject({ rewrittenDataFilesCount: 6, unfinished: [] })
    expect(await texts()).toEqual(rowsBefore)
    const files = await dataFiles(table)
    expect(files).toHaveLength(result.addedDataFilesCount)
    expect(new Set(files.map(({ file }) => file.specId))).toEqual(new Set([table.metadata.defaultSpecId]))
    expect(new Set(files.map(({ file }) => file.partition[0]))).toEqual(new Set(['a', 'b', 'ä', null]))
    expect((await planRewriteDataFiles(table.loaded)).groups).toEqual([])
  })
})

test('dangling deletes go in a second commit, global ones only when nothing is older', async () => {
  const table = await shuffled()
  await table.deleteEqual(['id'], [{ id: 3n }])
  await table.append([row(3)])
  const idsBefore = sorted(await idsOf(table))
  const { result } = await rewrite(catalog(), table, { options: { 'remove-dangling-deletes': true } })
  expect(sorted(await idsOf(table))).toEqual(idsBefore)
  expect(result.removedDeleteFilesCount).toBe(1)
  expect(await deleteFiles(table)).toEqual([])
  await table.deleteEqual(['id'], [{ id: 4n }])
  const again = await rewrite(catalog(), table, { options: { 'remove-dangling-deletes': true, 'min-input-files': 9 } })
  expect(again.result.removedDeleteFilesCount).toBe(0)
  expect(await deleteFiles(table)).toHaveLength(1)
})

test.each([2, 3] as const)(
  'in v%i deletes of one file that is gone are dangling though its partition is older',
  async (formatVersion) => {
    const table = await newTable({ schema, formatVersion, properties: { 'commit.manifest-merge.enabled': 'false' } })
    for (const n of [0, 1]) await table.append([row(n), row(n + 10)])
    const [first, second] = (await dataFiles(table)).map(({ file }) => file.filePath)
    // In two commits, so that the deletes are in two files.
    await table.deletePositions(new Map([[first ?? '', [0]]]))
    await table.deletePositions(new Map([[second ?? '', [0]]]))
    const deletes = await deleteFiles(table)
    const isOf = (path: string | undefined) => (entry: (typeof deletes)[number]) => onlyPath(entry.file) === path
    await table.deleteFiles([first ?? ''])
    // The commit takes such deletes along; those of other engines do not, so they are put back.
    await table.appendFiles(deletes.filter(isOf(first)).map(({ file }) => file))
    const before = sorted(await idsOf(table))
    const { result } = await rewrite(catalog(), table, {
      options: { 'remove-dangling-deletes': true, 'rewrite-all': true },
    })
    expect(result.removedDeleteFilesCount).toBe(2)
    expect(await deleteFiles(table)).toEqual([])
    expect(sorted(await idsOf(table))).toEqual(before)
  },
)

test('a file that is moved to another partition is not moved past a delete of its old one', async () => {
  const partitionSpec = {
    fields: [{ fieldId: 1000, sourceId: 2, name: 's', transform: { name: 'identity' } }],
  } as const
  const table = await newTable({ schema, formatVersion: 2, partitionSpec })
  for (let n = 0; n < 5; n += 1) await table.append([{ id: BigInt(n), s: 'a', x: 0 }])
  const deleted = await writeEqualityDeletes(duckdb(), table.loaded, ['s', 'id'], [{ s: 'a', id: 2n }])
  await table.updatePartitionSpec([
    { change: 'remove', name: 's' },
    { change: 'add', column: 'id', transform: { name: 'bucket', buckets: 2 } },
  ])
  const { metadata } = table
  const guard = before(1, async () => {
    const outcome = await commitTable(catalog(), table.loaded.identifier, (fresh, attempt) =>
      buildSnapshot(fresh, 'main', { added: deleted }, attempt),
    )
    expect(outcome.outcome).toBe('applied')
  })
  const { result } = await rewrite(catalog(), table, {}, { guard })
  expect(table.metadata.snapshots.length).toBe(metadata.snapshots.length + 2)
  expect(result.rewrittenDataFilesCount).toBe(5)
  expect(sorted(await idsOf(table))).toEqual([0n, 1n, 3n, 4n])
})

test('files of older specs are grouped with those of a spec without fields, as in Spark', async () => {
  const table = await newTable({ schema, formatVersion: 2 })
  await table.append([row(1)])
  await table.updatePartitionSpec([{ change: 'add', column: 's', transform: { name: 'identity' }, name: 's' }])
  await table.append([row(2), row(3)])
  await table.updatePartitionSpec([{ change: 'remove', name: 's' }])
  await table.append([row(4)])
  const idsBefore = sorted(await idsOf(table))
  const { plan, result } = await rewrite(catalog(), table, { options: { 'rewrite-all': true } })
  expect(plan.groups).toHaveLength(1)
  expect(result).toMatchObject({ rewrittenDataFilesCount: 4, addedDataFilesCount: 1 })
  expect(sorted(await idsOf(table))).toEqual(idsBefore)
})
