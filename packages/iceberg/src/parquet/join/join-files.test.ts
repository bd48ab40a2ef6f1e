import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { DuckDBConnection } from '@duckdb/node-api'
import fc from 'fast-check'
import { parquetMetadata, parquetReadObjects } from 'hyparquet'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { LocalStorage } from '../../storage/local-storage.ts'
import type { ByteRange } from '../../storage/storage.ts'
import { DuckDb } from '../duckdb.ts'
import { ThriftStruct } from '../thrift-compact.ts'
import { joinFiles, type JoinFilesOptions } from './join-files.ts'
import { joinable, type JoinInput } from './joinable.ts'
import { offsetIndex, pageLocation } from './parquet-fields.ts'
import { readWholeFooter } from './whole-footer.ts'

let folder: string
let duckdb: DuckDb
let connection: DuckDBConnection
const storage = new LocalStorage()

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'fencepost-join-'))
  duckdb = await DuckDb.open({ threads: 1 })
  connection = await duckdb.connect()
})
afterAll(async () => {
  await duckdb.close()
  await rm(folder, { recursive: true, force: true })
})

let made = 0
const fresh = (): string => join(folder, `${(made += 1)}.parquet`)
/** Files by pyarrow, with many pages, page indexes and Bloom filters: scripts/interop/parquet_files.py. */
const stored = (name: string): string =>
  fileURLToPath(new URL(`../../../test/parquet-files/${name}.parquet`, import.meta.url))

const everyType = `
  n as id, n::integer as i, n % 2 = 0 as even, n::float / 3 as f, n::double / 7 as d, n::decimal(9, 2) as small,
  n::decimal(38, 5) as large, date '2026-01-01' + n::integer as day, timestamp '2026-01-01' + n * interval 1 second as at,
  case when n % 5 <> 0 then 'text ' || n end as t, encode('bytes ' || n) as b, md5(n::varchar)::uuid as u,
  ['few', 'words', 'only'][(n % 3 + 1)::integer] as few, case when n % 7 <> 0 then [n, null, n + 1] end as many,
  {'a': n, 'b': {'deep': case when n % 3 <> 0 then 'x' || n end}} as nested, map {n::varchar: [n]} as named`

const groupRows = ', row_group_size 2048'

async function write(
  rows: { first: number; count: number },
  options: string = groupRows,
  columns: string = everyType,
): Promise<string> {
  const path = fresh()
  const select = `select ${columns} from range(${rows.first}, ${rows.first + rows.count}) r (n)`
  const ids = options.includes('field_ids') ? '' : ", field_ids 'auto'"
  await connection.run(`copy (${select}) to '${path}' (format parquet${ids}${options})`)
  return path
}

async function inputOf(path: string, lineage?: { firstRowId: bigint; sequenceNumber: bigint }): Promise<JoinInput> {
  const size = await storage.size(path)
  const footer = await readWholeFooter({ location: path, size, read: (range) => storage.read(path, range) })
  const file = {
    content: 'data',
    filePath: path,
    fileFormat: 'parquet',
    specId: 0,
    partition: [],
    recordCount: footer.rowCount,
    fileSizeInBytes: size,
    firstRowId: lineage?.firstRowId,
  } as const
  return { footer, entry: { file, sequenceNumber: lineage?.sequenceNumber ?? 0n } }
}

async function joined(paths: readonly string[], more: Partial<JoinFilesOptions> = {}) {
  const inputs = await Promise.all(paths.map((path) => inputOf(path)))
  return await joinFiles({ inputs, output: fresh(), storage, schema: { fields: [] }, ...more })
}

function parquet(paths: readonly string[]): string {
  return `read_parquet([${paths.map((path) => `'${path}'`).join(', ')}])`
}

async function rowsOf(paths: readonly string[], columns = '*'): Promise<unknown[][]> {
  return (await connection.runAndReadAll(`select ${columns} from ${parquet(paths)}`)).getRowsJson()
}

/** Equal of equal rows in the same order, and much sooner compared than the rows. */
async function digestOf(paths: readonly string[], columns = '*'): Promise<unknown[][]> {
  const numbered = `select row_number() over () as nth, t::varchar as text from (select ${columns} from ${parquet(paths)}) t`
  const sql = `select count(*), md5(string_agg(text, '|' order by nth)) from (${numbered})`
  return (await connection.runAndReadAll(sql)).getRowsJson()
}

/** Opened without any copy of its own: what the footer says is where it is read from. */
async function opened(path: string) {
  const bytes = await readFile(path)
  const file = bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length)
  return { file, metadata: parquetMetadata(file) }
}

test('a joined file has the rows of its inputs in their order, whatever their codecs and encodings', async () => {
  const paths = [
    await write({ first: 0, count: 5000 }, `${groupRows}, compression zstd`),
    await write({ first: 9000, count: 100 }, ', compression snappy'),
    await write({ first: 100, count: 3000 }, `${groupRows}, compression uncompressed, dictionary_size_limit 0`),
    await write({ first: 20_000, count: 2500 }, `${groupRows}, compression gzip, parquet_version v2`),
    await write({ first: 7000, count: 2049 }, `${groupRows}, compression lz4_raw`),
  ]
  const file = await joined(paths)
  expect(await digestOf([file.location])).toEqual(await digestOf(paths))
  expect(file.recordCount).toBe(12_649)
  expect(file.fileSizeInBytes).toBe(await storage.size(file.location))
  expect(file.chunks.reduce((sum, { bytes }) => sum + bytes, 0)).toBeLessThan(file.fileSizeInBytes)
})

test('every row group is numbered, and says where it begins', async () => {
  const file = await joined([await write({ first: 0, count: 5000 }), await write({ first: 5000, count: 3000 })])
  const { metadata } = await opened(file.location)
  expect(metadata.row_groups.map((group) => group.ordinal)).toEqual([0, 1, 2, 3, 4])
  expect(metadata.row_groups.map((group) => Number(group.file_offset))).toEqual(file.splitOffsets)
  const starts = metadata.row_groups.map(({ columns: [first] }) =>
    Number(first?.meta_data?.dictionary_page_offset ?? first?.meta_data?.data_page_offset),
  )
  expect(starts).toEqual(file.splitOffsets)
  expect(metadata.row_groups.map((group) => Number(group.total_compressed_size))).toEqual(
    metadata.row_groups.map(({ columns }) =>
      columns.reduce((sum, { meta_data }) => sum + Number(meta_data?.total_compressed_size), 0),
    ),
  )
  expect(metadata.num_rows).toBe(8000n)
})

test('joined files can be joined again', async () => {
  const paths = [await write({ first: 0, count: 3000 }), await write({ first: 3000, count: 10 })]
  const once = await joined(paths)
  const twice = await joined([once.location, ...paths, once.location])
  expect(await digestOf([twice.location])).toEqual(await digestOf([...paths, ...paths, ...paths]))
})

test('what the inputs say of themselves alike is kept, and what they say differently is not', async () => {
  const kept = `, kv_metadata {'both': 'the same', 'one': `
  const paths = [
    await write({ first: 0, count: 10 }, `${kept}'a'}`),
    await write({ first: 0, count: 10 }, `${kept}'b'}`),
  ]
  const { metadata } = await opened((await joined(paths)).location)
  expect(metadata.key_value_metadata).toEqual([{ key: 'both', value: 'the same' }])
  expect(metadata.created_by).toBe((await opened(paths[0] ?? '')).metadata.created_by)
})

describe('page indexes and Bloom filters', () => {
  const paths = ['a', 'b', 'c'].map(stored)

  test('any rows are found by their pages alone', async () => {
    const { location } = await joined(paths)
    const { file, metadata } = await opened(location)
    const all = await parquetReadObjects({ file, metadata })
    expect(all).toHaveLength(2700)
    expect(all.map(({ id }) => id)).toEqual((await rowsOf(paths, 'id')).map(([id]) => BigInt(id as string)))
    for (let rowStart = 0; rowStart < 2700; rowStart += 149) {
      const rowEnd = Math.min(2700, rowStart + 25)
      const some = await parquetReadObjects({ file, metadata, rowStart, rowEnd, useOffsetIndex: true })
      expect(some, `rows from ${rowStart}`).toEqual(all.slice(rowStart, rowEnd))
    }
  })

  test('every page of every column is where the offset index says, and the column index is the same', async () => {
    const { location } = await joined(paths)
    const output = await inputOf(location)
    const inputs = await Promise.all(paths.map((path) => inputOf(path)))
    const before = inputs.flatMap(({ footer }) =>
      footer.groups.flatMap(({ chunks }) => chunks.map((chunk) => ({ footer, chunk }))),
    )
    const after = output.footer.groups.flatMap(({ chunks }) => chunks)
    expect(after).toHaveLength(before.length)
    for (const [index, { footer, chunk }] of before.entries()) {
      const copy = after[index]
      const read = async (from: string, range: ByteRange | undefined) => range && (await storage.read(from, range))
      expect(await read(location, copy?.columnIndex)).toEqual(await read(footer.location, chunk.columnIndex))
      expect(copy?.columnIndex).toBeDefined()
      const pages = await pagesOf(footer.location, chunk.offsetIndex)
      expect(pages.length).toBeGreaterThan(1)
      expect(await pagesOf(location, copy?.offsetIndex)).toEqual(pages)
    }
  })

  /** The bytes of every page, and its first row, by the offset index alone. */
  async function pagesOf(location: string, range: ByteRange | undefined): Promise<(string | number)[][]> {
    if (range === undefined) return []
    const index = ThriftStruct.parse(await storage.read(location, range))
    return await Promise.all(
      (index.structs(offsetIndex.pages) ?? []).map(async (page) => {
        const [offset, length] = [
          page.integer(pageLocation.offset) ?? 0,
          page.integer(pageLocation.compressedSize) ?? 0,
        ]
        const bytes = await storage.read(location, { offset, length })
        return [page.integer(pageLocation.firstRow) ?? -1, Buffer.from(bytes).toString('base64')]
      }),
    )
  }

  test('a Bloom filter answers as it did', async () => {
    const { location } = await joined(paths)
    const excluded = async (path: string, value: string) =>
      (
        await connection.runAndReadAll(
          `select bloom_filter_excludes from parquet_bloom_probe('${path}', 'name', '${value}') order by row_group_id`,
        )
      )
        .getRows()
        .map(([excludes]) => excludes)
    for (const value of ['name 7919', 'name 5', 'name 2121', 'nothing']) {
      const before = (await Promise.all(paths.map((path) => excluded(path, value)))).flat()
      expect(await excluded(location, value), value).toEqual(before)
    }
    expect(await excluded(location, 'nothing')).toContain(true)
  })
})

describe('row lineage', () => {
  const lineage = '_row_id, _last_updated_sequence_number'
  const expected = (...ranges: readonly { first: number; rows: number; sequence: number }[]) =>
    ranges.flatMap(({ first, rows, sequence }) =>
      Array.from({ length: rows }, (_, row) => [String(first + row), String(sequence)]),
    )

  test('rows keep the ids and sequence numbers that they had by their place', async () => {
    const paths = [
      await write({ first: 0, count: 45_001 }, ', row_group_size 40960', 'n as id'),
      await write({ first: 50_000, count: 1 }, '', 'n as id'),
    ]
    const inputs = [
      await inputOf(paths[0] ?? '', { firstRowId: 1000n, sequenceNumber: 3n }),
      await inputOf(paths[1] ?? '', { firstRowId: 9_007_199_254_740_993n, sequenceNumber: 70_000n }),
    ]
    const { location } = await joined([], { inputs, lineage: true })
    const last = ['9007199254740993', '70000']
    expect(JSON.stringify(await rowsOf([location], lineage))).toBe(
      JSON.stringify([...expected({ first: 1000, rows: 45_001, sequence: 3 }), last]),
    )
    expect(await digestOf([location], 'id')).toEqual(await digestOf(paths))
    const nulls = await rowsOf([location], 'count(*) filter (_row_id is null or _last_updated_sequence_number is null)')
    expect(nulls).toEqual([['0']])
    const ids = `select field_id from parquet_schema('${location}') where name in ('_row_id', '_last_updated_sequence_number')`
    expect((await connection.runAndReadAll(ids)).getRowsJson()).toEqual([['2147483540'], ['2147483539']])
  })

  test('a file that holds its lineage and one that does not are joined', async () => {
    const paths = [await write({ first: 0, count: 3000 }), await write({ first: 3000, count: 10 })]
    const [first, second] = [
      await inputOf(paths[0] ?? '', { firstRowId: 0n, sequenceNumber: 1n }),
      await inputOf(paths[1] ?? '', { firstRowId: 3000n, sequenceNumber: 2n }),
    ]
    const once = await joined([], { inputs: [second, first], lineage: true })
    const held = await inputOf(once.location, { firstRowId: 77_777n, sequenceNumber: 9n })
    const third = await inputOf(paths[1] ?? '', { firstRowId: 500_000n, sequenceNumber: 10n })
    for (const inputs of [
      [held, third],
      [third, held],
    ]) {
      expect(joinable(inputs, { minRowGroupBytes: 0, lineage: true }).sets).toEqual([inputs])
      const { location } = await joined([], { inputs, lineage: true })
      const heldRows = expected({ first: 3000, rows: 10, sequence: 2 }, { first: 0, rows: 3000, sequence: 1 })
      const newRows = expected({ first: 500_000, rows: 10, sequence: 10 })
      expect(await rowsOf([location], lineage)).toEqual(
        inputs[0] === held ? [...heldRows, ...newRows] : [...newRows, ...heldRows],
      )
    }
  })

  test('the lineage has page indexes where the other columns have them', async () => {
    const inputs = [
      await inputOf(stored('a'), { firstRowId: 10n, sequenceNumber: 1n }),
      await inputOf(stored('b'), { firstRowId: 5000n, sequenceNumber: 2n }),
    ]
    const { location } = await joined([], { inputs, lineage: true })
    const { file, metadata } = await opened(location)
    const read = await parquetReadObjects({ file, metadata, rowStart: 890, rowEnd: 905, useOffsetIndex: true })
    expect(read.map((row) => [row['_row_id'], row['_last_updated_sequence_number']])).toEqual(
      expected({ first: 900, rows: 10, sequence: 1 }, { first: 5000, rows: 5, sequence: 2 }).map((row) =>
        row.map(BigInt),
      ),
    )
    expect(metadata.row_groups.every(({ columns }) => columns.every((column) => column.offset_index_length))).toBe(true)
    // Arrow's readers refuse a file whose columns are not those of the schema that it holds beside its own.
    expect(metadata.key_value_metadata?.map(({ key }) => key) ?? []).not.toContain('ARROW:schema')
  })
})

describe('proof', () => {
  /** Changes one byte of what is read at a place, after the file was written. */
  class Rotting extends LocalStorage {
    readonly #place: number
    #location = ''
    constructor(place: number) {
      super()
      this.#place = place
    }
    override async write(location: string, content: Uint8Array | AsyncIterable<Uint8Array>): Promise<void> {
      await super.write(location, content)
      this.#location = location
    }
    override async read(location: string, range?: ByteRange): Promise<Uint8Array> {
      const bytes = await super.read(location, range)
      const at = this.#place - (range?.offset ?? 0)
      if (location === this.#location && at >= 0 && at < bytes.length) bytes[at] = (bytes[at] ?? 0) ^ 1
      return bytes
    }
  }

  test('a file that is not read back as it was written is refused and removed', async () => {
    const paths = [await write({ first: 0, count: 3000 }), await write({ first: 3000, count: 3000 })]
    const { fileSizeInBytes, location } = await joined(paths)
    await rm(location)
    const before = await readdir(folder)
    for (const place of [0, 4, Math.floor(fileSizeInBytes / 2), fileSizeInBytes - 1]) {
      const rotten = joined(paths, { storage: new Rotting(place) })
      await expect(rotten, `byte ${place}`).rejects.toMatchObject({ code: 'storage_failed' })
    }
    expect(await readdir(folder)).toEqual(before)
    await joined(paths, { storage: new Rotting(100), readBack: false })
  })

  test('a run that is cancelled leaves nothing', async () => {
    const paths = [await write({ first: 0, count: 3000 }), await write({ first: 3000, count: 3000 })]
    const before = await readdir(folder)
    const controller = new AbortController()
    class Cancelling extends LocalStorage {
      override async write(location: string, content: AsyncIterable<Uint8Array>): Promise<void> {
        controller.abort(new Error('enough'))
        await super.write(location, content)
      }
    }
    const cancelled = joined(paths, { storage: new Cancelling(), signal: controller.signal })
    await expect(cancelled).rejects.toThrow('enough')
    expect(await readdir(folder)).toEqual(before)
  })

  test('a read that never ends does not delay a cancellation', async () => {
    const paths = [await write({ first: 0, count: 10 }), await write({ first: 0, count: 10 })]
    const inputs = await Promise.all(paths.map((path) => inputOf(path)))
    const controller = new AbortController()
    class Hanging extends LocalStorage {
      override async read(): Promise<Uint8Array> {
        controller.abort(new Error('enough'))
        return await new Promise(() => {})
      }
    }
    const cancelled = joined([], { inputs, storage: new Hanging(), signal: controller.signal })
    await expect(cancelled).rejects.toThrow('enough')
  })

  test('the checksum and place of every copied column are told', async () => {
    const paths = [stored('a'), stored('b')]
    const { location, chunks } = await joined(paths)
    expect(chunks).toHaveLength((3 + 2) * 8)
    for (const { source, sourceOffset, offset, bytes } of chunks) {
      const [before, after] = [
        await storage.read(source, { offset: sourceOffset, length: bytes }),
        await storage.read(location, { offset, length: bytes }),
      ]
      expect(Buffer.compare(before, after)).toBe(0)
    }
    const { metadata } = await opened(location)
    expect(chunks.map(({ values }) => values)).toEqual(
      metadata.row_groups.flatMap(({ columns }) => columns.map(({ meta_data }) => Number(meta_data?.num_values))),
    )
  })

  test('the output is never one of the inputs', async () => {
    const path = await write({ first: 0, count: 10 })
    await expect(joined([path], { output: path })).rejects.toMatchObject({ code: 'location_invalid' })
    expect(await rowsOf([path], 'count(*)')).toEqual([['10']])
  })
})

test('any files of one schema, in any order, are joined without a change of a row', async () => {
  const codecs = ['zstd', 'snappy', 'gzip', 'lz4_raw', 'uncompressed', 'brotli']
  const file = fc.record({
    first: fc.nat(100_000),
    count: fc.integer({ min: 1, max: 2500 }),
    codec: fc.constantFrom(...codecs),
    version: fc.constantFrom('v1', 'v2'),
    dictionary: fc.constantFrom('', ', dictionary_size_limit 0'),
    firstRowId: fc.bigInt({ min: 0n, max: 2n ** 62n }),
    sequenceNumber: fc.bigInt({ min: 0n, max: 2n ** 40n }),
  })
  const files = fc.record({ files: fc.array(file, { minLength: 1, maxLength: 5 }), lineage: fc.boolean() })
  await fc.assert(
    fc.asyncProperty(files, async ({ files: written, lineage }) => {
      const inputs: JoinInput[] = []
      for (const { first, count, codec, version, dictionary, ...ids } of written) {
        const path = await write(
          { first, count },
          `${groupRows}, compression ${codec}, parquet_version ${version}${dictionary}`,
        )
        inputs.push(await inputOf(path, ids))
      }
      const { location, recordCount } = await joined([], { inputs, lineage })
      const paths = inputs.map(({ footer }) => footer.location)
      const without = lineage ? '* exclude (_row_id, _last_updated_sequence_number)' : '*'
      expect(await digestOf([location], without)).toEqual(await digestOf(paths))
      expect(recordCount).toBe(written.reduce((sum, { count }) => sum + count, 0))
      if (lineage) {
        const ids = written.flatMap(({ firstRowId, sequenceNumber, count }) =>
          Array.from({ length: count }, (_, row) => [String(firstRowId + BigInt(row)), String(sequenceNumber)]),
        )
        const read = await rowsOf([location], '_row_id, _last_updated_sequence_number')
        expect(JSON.stringify(read)).toBe(JSON.stringify(ids))
      }
    }),
    { numRuns: 8 },
  )
})
