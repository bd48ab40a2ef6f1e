import { describe, expect, test } from 'vitest'
import { planFiles, planRewriteDataFiles, type NewTable, type ScanFile, type Table } from '../../src/index.ts'
import { bed, entriesOf, field, filesBelow } from '../write/bed.ts'
import { dataFiles, deleteFiles, rewrite } from './rewrite-bed.ts'

const { catalog, newTable, rows } = bed()

const schema: NewTable['schema'] = {
  fields: [
    field(1, 'id', { type: 'long' }, true),
    field(2, 'p', { type: 'string' }),
    field(3, 'x', { type: 'double' }),
    field(4, 'tags', { type: 'list', elementId: 5, element: { type: 'float' }, elementRequired: false }),
  ],
}
const byP: NewTable['partitionSpec'] = {
  fields: [{ fieldId: 1000, sourceId: 2, name: 'p', transform: { name: 'identity' } }],
}
const row = (id: number, p = 'a') => ({
  id: BigInt(id),
  p,
  x: [0, -0, Number.NaN, 1.5, null][id % 5] ?? null,
  tags: [null, [], [null], [-0, 1]][id % 4] ?? null,
})
const lineage = ['_row_id', '_last_updated_sequence_number'] as const

/** Rows as texts in which both zeros differ. */
async function texts(table: Table, options: Parameters<typeof rows>[1] = {}): Promise<string[]> {
  const exact = (_: string, value: unknown): unknown =>
    typeof value === 'bigint' ? `${value}n` : Object.is(value, -0) ? '-0' : Number.isNaN(value) ? 'NaN' : value
  return (await rows(table, options)).map((each) => JSON.stringify(each, exact)).toSorted()
}

async function firstFile(table: Table): Promise<string> {
  const [first] = await dataFiles(table)
  return first?.file.filePath ?? expect.fail('there is no file')
}

describe.each([1, 2, 3] as const)('in v%i', (formatVersion) => {
  const make = async (more: Partial<NewTable> = {}): Promise<Table> => {
    const table = await newTable({ schema, partitionSpec: byP, formatVersion, ...more })
    for (let n = 0; n < 6; n += 1) await table.append([row(n * 2), row(n * 2 + 1), row(n + 100, 'b')])
    return table
  }
  const options = formatVersion === 3 ? { metadataColumns: lineage } : {}

  test('small files become one for each partition, with the same rows, and nothing is left to do', async () => {
    const table = await make()
    const before = await texts(table, options)
    const { plan, result } = await rewrite(catalog(), table, {}, { summary: { 'job-id': 'j1' } })
    expect(
      plan.groups.map(({ partition, files, why, expectedFiles }) => [partition, files.length, why, expectedFiles]),
    ).toEqual([
      ['p=a', 6, 'enough-files', 1],
      ['p=b', 6, 'enough-files', 1],
    ])
    expect(result).toMatchObject({
      rewrittenDataFilesCount: 12,
      addedDataFilesCount: 2,
      failedDataFilesCount: 0,
      removedDeleteFilesCount: 0,
      rewrittenBytesCount: plan.bytes,
      unfinished: [],
    })
    expect(await texts(table, options)).toEqual(before)
    const head = table.metadata.snapshots.at(-1)
    expect(head?.summary).toMatchObject({
      operation: 'replace',
      'job-id': 'j1',
      'added-records': '18',
      'deleted-records': '18',
    })
    expect(result.snapshotIds).toEqual([String(head?.snapshotId)])
    const files = await dataFiles(table)
    expect(new Set(files.map(({ file }) => file.recordCount))).toEqual(new Set([12, 6]))
    // As old as the snapshot it was made of.
    if (formatVersion > 1) for (const each of files) expect(each.sequenceNumber).toBe((head?.sequenceNumber ?? 0n) - 1n)
    expect((await entriesOf(table, true)).filter(({ status }) => status === 'deleted')).toHaveLength(12)
    expect((await planRewriteDataFiles(table.loaded)).groups).toEqual([])
  })

  if (formatVersion === 1) return

  test('deletes of every kind are applied, and those of the old files alone go with them', async () => {
    const table = await make()
    const file = await firstFile(table)
    await table.deletePositions(new Map([[file, [0]]]))
    const others = (await dataFiles(table)).filter(({ file: { partition } }) => partition[0] === 'b')
    const positions = new Map(others.slice(0, 2).map((each) => [each.file.filePath, [0]]))
    await table.deletePositions(positions, { granularity: 'partition' })
    await table.deleteEqual(
      ['p', 'id'],
      [
        { p: 'a', id: 5n },
        { p: 'b', id: 105n },
      ],
      { append: [row(5), row(105, 'b')] },
    )
    const before = await texts(table, options)
    expect(before).toHaveLength(18 - 3 - 1 + 2)
    const { result } = await rewrite(catalog(), table)
    expect(await texts(table, options)).toEqual(before)
    expect(result).toMatchObject({ rewrittenDataFilesCount: 14, addedDataFilesCount: 2 })
    expect((await planRewriteDataFiles(table.loaded)).groups).toEqual([])
    // All that was there is older than the new files: nothing applies to them any more.
    for (const { deletes } of await scanned(table)) expect(deletes.equality).toEqual([])
    expect(result.removedDeleteFilesCount).toBeGreaterThan(0)
    expect((await deleteFiles(table)).filter((each) => each.file.fileFormat === 'puffin')).toEqual([])
  })

  test('a file with many deleted rows is rewritten alone', async () => {
    const table = await newTable({ schema, formatVersion })
    await table.append([0, 1, 2, 3].map((id) => row(id)))
    await table.deletePositions(new Map([[await firstFile(table), [0, 3]]]))
    const { plan, result } = await rewrite(catalog(), table)
    expect(plan.groups.map(({ why }) => why)).toEqual(['deletes'])
    expect(result).toMatchObject({ rewrittenDataFilesCount: 1, addedDataFilesCount: 1, removedDeleteFilesCount: 1 })
    expect((await rows(table)).map(({ id }) => id)).toEqual([1n, 2n])
    expect(await deleteFiles(table)).toEqual([])
    expect((await planRewriteDataFiles(table.loaded)).groups).toEqual([])
  })

  test('files of which every row is deleted leave none', async () => {
    const table = await newTable({ schema, formatVersion })
    await table.append([row(1)])
    await table.deletePositions(new Map([[await firstFile(table), [0]]]))
    const { result } = await rewrite(catalog(), table)
    expect(result).toMatchObject({ rewrittenDataFilesCount: 1, addedDataFilesCount: 0 })
    expect(await entriesOf(table)).toEqual([])
    expect(await rows(table)).toEqual([])
  })
})

async function scanned(table: Table) {
  const files: ScanFile[] = []
  for await (const batch of planFiles(table.loaded)) files.push(...batch)
  return files
}

test('a table without anything to do is left as it is', async () => {
  const table = await newTable({ schema })
  const { plan, result } = await rewrite(catalog(), table)
  expect(plan.groups).toEqual([])
  expect(result).toMatchObject({ rewrittenDataFilesCount: 0, snapshotIds: [] })
  expect(await filesBelow(table, `${table.metadata.location}/data`)).toEqual([])
})
