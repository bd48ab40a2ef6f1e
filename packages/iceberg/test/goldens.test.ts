import { readdirSync, readFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { inspect } from 'node:util'
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import {
  DuckDb,
  isNested,
  LocalStorage,
  metadataColumns,
  parseTableMetadata,
  planContext,
  rowToJson,
  schemaOf,
  scanRows,
  Staging,
  type ByteRange,
  type Filter,
  type MetadataColumn,
  type PlainJson,
  type ScannedRow,
  type SnapshotChoice,
  type Value,
} from '../src/index.ts'
import { filterOf, filterShape, fulfils } from './scan/random-filters.ts'

// Tables that others wrote, each with the rows that others read: see goldens/README.md.

const root = fileURLToPath(new URL('goldens', import.meta.url))

/** Tables that are refused, by what the error says. */
const refused: Readonly<Record<string, RegExp>> = {
  codecs: /is compressed with LZ4, which DuckDB does not read/,
  'format-avro': /\.avro is avro; only Parquet files are read/,
  'format-orc': /\.orc is orc; only Parquet files are read/,
  'v3-nanoseconds': /Column at .* is timestamptz_ns, which cannot be read exactly/,
  'v3-variant': /Column v .* is variant, which cannot be read exactly/,
}

/** Filters that once per table are surely tried: Arrow leaves NaN out of the statistics of its files. */
const sureFilters: Readonly<Record<string, Filter[]>> = {
  'pyiceberg-v2-types': (['>', '<='] as const).map((op) => ({ op, column: 'd', value: 5 })),
}

type JsonRow = Record<string, PlainJson>

interface Expected {
  location: string
  metadata: string
  rows: JsonRow[]
  snapshots: Record<string, { rows: JsonRow[] } | JsonRow[]>
  refs: Record<string, { rows: JsonRow[] } | JsonRow[]>
  row_lineage?: JsonRow[]
}

/** A golden where it is in the repository, under the paths that its metadata has. */
class GoldenStorage extends LocalStorage {
  readonly location: string
  readonly folder: string

  constructor(location: string, folder: string) {
    super()
    this.location = location
    this.folder = folder
  }

  override read(location: string, range?: ByteRange): Promise<Uint8Array> {
    return super.read(this.localPath(location), range)
  }

  localPath(location: string): string {
    const path = location.replace(/^file:(\/\/)?(?=\/)/, '')
    if (!path.startsWith(`${this.location}/`)) throw new Error(`${location} is not in ${this.location}`)
    return this.folder + path.slice(this.location.length)
  }
}

let duckDb: DuckDb
let staging: Staging
beforeAll(async () => {
  duckDb = await DuckDb.open({ threads: 2 })
  staging = await Staging.open()
})
afterAll(async () => {
  await duckDb.close()
  await staging.close()
})

describe.each(readdirSync(root).filter((name) => !name.endsWith('.md')))('golden table %s', (name) => {
  const folder = join(root, name)

  const expected = JSON.parse(readFileSync(join(folder, 'expected.json'), 'utf8')) as Expected

  async function load() {
    const metadata = parseTableMetadata(await readFile(join(folder, expected.metadata)), expected.metadata)
    const table = { metadata, storage: new GoldenStorage(expected.location, folder) }
    const scan = async (choice: SnapshotChoice, extra: MetadataColumn[] = []): Promise<JsonRow[]> => {
      const fields = [...planContext(metadata, choice).schema.fields, ...extra.map((column) => metadataColumns[column])]
      const rows: JsonRow[] = []
      const options = { ...choice, metadataColumns: extra, duckDb, staging }
      for await (const batch of scanRows(table, options)) for (const row of batch) rows.push(rowToJson(fields, row))
      return rows
    }
    const filtered = async (filter?: Filter): Promise<ScannedRow[]> => {
      const rows: ScannedRow[] = []
      for await (const batch of scanRows(table, { ...(filter && { filter }), duckDb, staging })) rows.push(...batch)
      return rows
    }
    return { scan, filtered, fields: schemaOf(metadata).fields }
  }

  if (refused[name] !== undefined) {
    const message = expect.stringMatching(refused[name]) as string
    it('is refused, and the error says why', async () => {
      const { scan } = await load()
      await expect(scan({})).rejects.toMatchObject({ code: 'scan_unsupported', message })
    })
    it('has the rows that others read in the snapshots that are not refused', async () => {
      const { scan } = await load()
      for (const [id, then] of Object.entries(expected.snapshots)) {
        const rows = await scan({ snapshotId: BigInt(id) }).catch((error: unknown) => {
          expect(error).toMatchObject({ code: 'scan_unsupported', message })
        })
        if (rows !== undefined) expect(sorted(rows), `snapshot ${id}`).toEqual(sorted(rowsOf(then)))
      }
    })
    return
  }

  it('has the rows that others read, in every snapshot, branch and tag', async () => {
    const { scan } = await load()
    expect(sorted(await scan({}))).toEqual(sorted(expected.rows))
    for (const [id, then] of Object.entries(expected.snapshots)) {
      expect(sorted(await scan({ snapshotId: BigInt(id) })), `snapshot ${id}`).toEqual(sorted(rowsOf(then)))
    }
    for (const [ref, then] of Object.entries(expected.refs)) {
      expect(sorted(await scan({ ref })), `ref ${ref}`).toEqual(sorted(rowsOf(then)))
    }
  })

  it('gives the rows that fulfil a filter, any filter', async () => {
    const { filtered, fields } = await load()
    const all = await filtered()
    const columns = fields.filter(({ type }) => !isNested(type) && type.type !== 'unknown').map(({ name, type }) => {
      const values = all.map((row) => row[name] as Value | null).filter((value) => value !== null)
      return { name, type, values }
    }) // prettier-ignore
    if (columns.length === 0) return
    const check = async (filter: Filter): Promise<void> => {
      const wanted = all.filter((row) => fulfils(filter, row))
      expect(texts(await filtered(filter))).toEqual(texts(wanted))
    }
    for (const filter of sureFilters[name] ?? []) await check(filter)
    const property = fc.asyncProperty(filterShape, (shape) => check(filterOf(shape, columns)))
    await fc.assert(property, { numRuns: Number(process.env['FENCEPOST_GOLDEN_FILTERS'] ?? 10) })
  })

  const { row_lineage: lineage } = expected
  if (lineage === undefined) return
  it('has the row lineage that others read', async () => {
    const { scan } = await load()
    const columns = Object.keys(lineage[0] ?? {})
    const rows = await scan({}, ['_row_id', '_last_updated_sequence_number'])
    const wanted = rows.map((row) => Object.fromEntries(columns.map((column) => [column, row[column] ?? null])))
    expect(sorted(wanted)).toEqual(sorted(lineage))
  })
})

it('every table that is said to be refused is there', () => {
  expect(readdirSync(root)).toEqual(expect.arrayContaining(Object.keys(refused)))
})

function rowsOf(then: { rows: JsonRow[] } | JsonRow[]): JsonRow[] {
  return Array.isArray(then) ? then : then.rows
}

function texts(rows: readonly ScannedRow[]): string[] {
  return rows
    .map((row) => inspect(row, { depth: Infinity, maxStringLength: Infinity, maxArrayLength: Infinity }))
    .toSorted()
}

/** Rows have no order; as texts they have one. */
function sorted(rows: readonly JsonRow[]): string[] {
  return rows.map((row) => JSON.stringify(row)).toSorted()
}
