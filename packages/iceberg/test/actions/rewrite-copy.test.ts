import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'
import {
  openTable,
  parseTableMetadata,
  planRewriteDataFiles,
  schemaOf,
  type NewTable,
  type Table,
} from '../../src/index.ts'
import { readWholeFooter } from '../../src/parquet/join/whole-footer.ts'
import { bed, field, filesBelow } from '../write/bed.ts'
import { before, dataFiles, deleteFiles, rewrite } from './rewrite-bed.ts'

// Files without deletes are joined by copying their bytes. The files here are tiny, so that every row group counts as large.

const { catalog, duckdb, newTable, rows } = bed()
const schema: NewTable['schema'] = {
  fields: [field(1, 'id', { type: 'long' }), field(2, 's', { type: 'string' })],
}
const copying = { 'copy-min-row-group-bytes': '1' }

async function sixFiles(formatVersion: 1 | 2 | 3): Promise<Table> {
  const table = await newTable({ schema, formatVersion })
  for (let n = 0; n < 6; n += 1) {
    await table.append([0, 1, 2, 3].map((k) => ({ id: BigInt(n * 10 + k), s: k === 2 ? null : `text ${n} ${k}` })))
  }
  return table
}

async function texts(table: Table): Promise<string[]> {
  const lineage = { metadataColumns: ['_row_id', '_last_updated_sequence_number'] as const }
  const found = await rows(table, table.metadata.formatVersion === 3 ? lineage : {})
  return found.map((row) => Object.values(row).map(String).join(' ')).toSorted()
}

describe.each([1, 2, 3] as const)('in v%i', (formatVersion) => {
  test('files without deletes are copied, and their rows, row ids and bounds stay', async () => {
    const table = await sixFiles(formatVersion)
    const rowsBefore = await texts(table)
    const { plan, result } = await rewrite(catalog(), table, { options: copying })
    expect(plan.groups).toMatchObject([{ how: 'copy', howReason: 'large-row-groups' }])
    expect(result).toMatchObject({ rewrittenDataFilesCount: 6, addedDataFilesCount: 1, unfinished: [] })
    expect(await texts(table)).toEqual(rowsBefore)
    const [entry, ...others] = await dataFiles(table)
    expect(others).toEqual([])
    // One row group for each of the old files: nothing was encoded.
    expect(entry?.file.splitOffsets).toHaveLength(6)
    expect(entry?.file).toMatchObject({ recordCount: 24 })
    expect(entry?.file.nullValueCounts?.get(2)).toBe(6)
    expect(await rows(table, { filter: { op: '>', column: 'id', value: 52n } })).toHaveLength(1)
    expect((await planRewriteDataFiles(table.loaded, { options: copying })).groups).toEqual([])
  })
})

test('small row groups are encoded, and the plan says so', async () => {
  const table = await sixFiles(2)
  const { plan, result } = await rewrite(catalog(), table)
  expect(plan.groups).toMatchObject([{ how: 'encode', howReason: 'small-row-groups' }])
  expect(result).toMatchObject({ addedDataFilesCount: 1 })
  expect((await dataFiles(table))[0]?.file.splitOffsets).toHaveLength(1)
})

test('sorted rows are encoded, and the plan says so', async () => {
  const table = await sixFiles(2)
  const { plan } = await rewrite(catalog(), table, { sortOrder: 'id DESC', options: copying })
  expect(plan.groups).toMatchObject([{ how: 'encode', howReason: 'sorted' }])
})

test.each([2, 3] as const)(
  'in v%i files with deletes are encoded beside those that are copied',
  async (formatVersion) => {
    const table = await sixFiles(formatVersion)
    const files = await dataFiles(table)
    const [one, two] = files
    await table.deletePositions(new Map([[one?.file.filePath ?? '', [1]]]))
    await table.deletePositions(new Map([[two?.file.filePath ?? '', [0, 1, 2]]]))
    const rowsBefore = await texts(table)
    const bytes = Math.max(...files.map(({ file }) => file.fileSizeInBytes))
    const options = { ...copying, 'rewrite-all': 'true', 'target-file-size-bytes': String(bytes * 4) }
    const { plan, result } = await rewrite(catalog(), table, { options })
    expect(plan.groups).toMatchObject([{ how: 'copy' }])
    expect(result).toMatchObject({ rewrittenDataFilesCount: 6, addedDataFilesCount: 2, unfinished: [] })
    expect(await texts(table)).toEqual(rowsBefore)
    expect(await deleteFiles(table)).toEqual([])
    const rowGroups = (await dataFiles(table)).map(({ file }) => file.splitOffsets?.length)
    expect(new Set(rowGroups)).toEqual(new Set([1, 4]))
  },
)

test('deletes that are committed while files are copied make the group be planned again', async () => {
  const table = await sixFiles(3)
  const [one] = await dataFiles(table)
  const other = await openTable(catalog(), table.loaded.identifier, { duckDb: duckdb() })
  let expected: string[] = []
  const guard = before(1, async () => {
    await other.deletePositions(new Map([[one?.file.filePath ?? '', [0]]]))
    expected = await texts(other)
  })
  const { result } = await rewrite(catalog(), table, { options: copying }, { guard })
  expect(result.unfinished).toEqual([])
  expect(expected).toHaveLength(23)
  expect(await texts(table)).toEqual(expected)
})

test('a copy that is refused leaves no file', async () => {
  const table = await sixFiles(2)
  const files = await filesBelow(table)
  const guard = (): Promise<never> => Promise.reject(new Error('no'))
  await expect(rewrite(catalog(), table, { options: copying }, { guard })).rejects.toMatchObject({
    code: 'commit_refused',
  })
  expect(await filesBelow(table)).toEqual(files)
})

describe.each(['v3-variant', 'v3-nanoseconds'])('a table that cannot be decoded: %s', (golden) => {
  const root = fileURLToPath(new URL(`../goldens/${golden}`, import.meta.url))
  const paths = readdirSync(root, { recursive: true, encoding: 'utf8' })
  const bytesOf = (pattern: RegExp): Buffer =>
    readFileSync(
      join(
        root,
        paths
          .filter((path) => pattern.test(path))
          .toSorted()
          .at(-1) ?? '',
      ),
    )

  test('is compacted all the same, with every byte of its columns', async () => {
    const metadata = parseTableMetadata(bytesOf(/\.metadata\.json$/), 'golden')
    const data = bytesOf(/\.parquet$/)
    const footer = await readWholeFooter({
      location: golden,
      size: data.length,
      read: async ({ offset, length }) => data.subarray(offset, offset + length),
    })
    const table = await newTable({ schema: schemaOf(metadata), formatVersion: 3 })
    const location = `${table.metadata.location}/data`
    for (const name of ['a', 'b', 'c', 'd', 'e']) {
      await table.loaded.storage.write(`${location}/${name}.parquet`, data)
      await table.appendFiles([
        {
          content: 'data',
          filePath: `${location}/${name}.parquet`,
          fileFormat: 'parquet',
          specId: 0,
          partition: [],
          recordCount: footer.rowCount,
          fileSizeInBytes: data.length,
          splitOffsets: footer.groups.map((_, index) => index + 4),
        },
      ])
    }
    const left = await planRewriteDataFiles(table.loaded)
    expect(left).toMatchObject({ groups: [], leftOut: [{ why: 'unsupported-type', files: 5 }] })
    const { plan, result } = await rewrite(catalog(), table, { options: copying })
    expect(plan.unsupported).toBeDefined()
    expect(plan.groups).toMatchObject([{ how: 'copy' }])
    expect(result).toMatchObject({ rewrittenDataFilesCount: 5, addedDataFilesCount: 1, unfinished: [] })
    const [joined] = await dataFiles(table)
    const content = Buffer.from(await table.loaded.storage.read(joined?.file.filePath ?? ''))
    expect(joined?.file.recordCount).toBe(footer.rowCount * 5)
    for (const { chunks } of footer.groups) {
      for (const { pages } of chunks) {
        const bytes = data.subarray(pages.offset, pages.offset + pages.length)
        expect(occurrences(content, bytes)).toBeGreaterThanOrEqual(5)
      }
    }
  })
})

function occurrences(content: Buffer, bytes: Buffer): number {
  let found = 0
  for (let at = content.indexOf(bytes); at !== -1; at = content.indexOf(bytes, at + 1)) found += 1
  return found
}
