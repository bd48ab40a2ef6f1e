import { spawnSync } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { installed } from '../../../../scripts/interop/install.mjs'
import { joinFiles } from '../../src/parquet/join/join-files.ts'
import { readWholeFooter } from '../../src/parquet/join/whole-footer.ts'
import { LocalStorage } from '../../src/storage/local-storage.ts'
import { startEngines, type Engines } from './engines.ts'
import { sorted } from './same-rows.ts'
import { requireInstalled } from './server-process.ts'

// Files that are joined by copying their column chunks, read by others: whole, by page indexes and by Bloom filters.

const storage = new LocalStorage()
const files = [
  { path: stored('a'), firstRowId: 1_000n, sequenceNumber: 3n, rows: 900 },
  { path: stored('b'), firstRowId: 70_000n, sequenceNumber: 5n, rows: 700 },
  { path: stored('c'), firstRowId: 2n, sequenceNumber: 1n, rows: 1_100 },
]
const lineage = files.flatMap(({ firstRowId, sequenceNumber, rows }) =>
  Array.from({ length: rows }, (_, row) => [Number(firstRowId) + row, Number(sequenceNumber)] as const),
)
let folder: string
let engines: Engines

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'fencepost-joined-'))
  engines = startEngines()
})
afterAll(async () => {
  await engines.close()
  await rm(folder, { recursive: true, force: true })
})

function stored(name: string): string {
  return fileURLToPath(new URL(`../parquet-files/${name}.parquet`, import.meta.url))
}

async function joined(name: string, withLineage: boolean): Promise<string> {
  const inputs = await Promise.all(
    files.map(async ({ path, firstRowId, sequenceNumber, rows }) => {
      const size = await storage.size(path)
      const footer = await readWholeFooter({ location: path, size, read: (range) => storage.read(path, range) })
      const file = { content: 'data', filePath: path, fileFormat: 'parquet', specId: 0, partition: [] } as const
      const entry = { file: { ...file, recordCount: rows, fileSizeInBytes: size, firstRowId }, sequenceNumber }
      return { footer, entry }
    }),
  )
  const output = join(folder, name, 'joined.parquet')
  await joinFiles({ inputs, output, storage, schema: { fields: [] }, lineage: withLineage })
  return output
}

test.each([false, true])(
  'pyarrow, Polars and DataFusion read a joined file as its inputs, with lineage: %s',
  async (withLineage) => {
    requireInstalled('readers', installed.readers)
    const path = await joined(`readers-${withLineage}`, withLineage)
    const program = fileURLToPath(new URL('../../../../scripts/interop/parquet_readers.py', import.meta.url))
    const args = [program, path, ...files.map((file) => file.path)]
    const { stdout, stderr } = spawnSync(installed.readers, args, { encoding: 'utf8', maxBuffer: 1e8 })
    expect(stderr).toBe('')
    const read = JSON.parse(stdout) as Record<string, unknown> & { pages: [number, number] }
    for (const reader of ['pyarrow', 'polars', 'datafusion']) {
      expect(read[reader], reader).toEqual({ all: 2_700, 'by ranges': expect.any(Number) })
    }
    expect(read.pages[0]).toBeGreaterThan(read.pages[1])
    const columns = withLineage ? [lineage.map(([id]) => id), lineage.map(([, sequence]) => sequence)] : []
    expect(read['lineage']).toEqual({ pyarrow: columns, polars: columns, datafusion: columns })
  },
  120_000,
)

test('Spark reads the rows and the lineage of a joined file, by Iceberg, vectorized and not, and by itself', async () => {
  const path = await joined('spark', true)
  await engines.catalog('joined', { spark: { type: 'hadoop', warehouse: join(folder, 'warehouse') } })
  await engines.sql(
    `create table joined.ns.t (id bigint, name string, price decimal(9, 2), at timestamp, few string,
       tags array<string>, place struct<x: double, y: double>)
     using iceberg tblproperties ('format-version' = '3')`,
  )
  await engines.sql(`call joined.system.add_files(table => 'ns.t', source_table => '\`parquet\`.\`${path}\`')`)
  const list = files.map((file) => `select * from parquet.\`${file.path}\``).join(' union all ')
  const expected = await engines.sql(`${list} order by id`)
  expect(expected).toHaveLength(2_700)
  for (const vectorized of ['true', 'false']) {
    await engines.sql(
      `alter table joined.ns.t set tblproperties ('read.parquet.vectorization.enabled' = '${vectorized}')`,
    )
    expect(await engines.sql('select * from joined.ns.t order by id')).toEqual(expected)
    const ids = await engines.sql('select _pos, _row_id, _last_updated_sequence_number as sequence from joined.ns.t')
    const expectedIds = lineage.map(([id, sequence], pos) => ({
      _pos: String(pos),
      _row_id: String(id),
      sequence: String(sequence),
    }))
    expect(sorted(ids)).toEqual(sorted(expectedIds))
    const some = await engines.sql('select * from joined.ns.t where id between 390 and 1015 order by id')
    expect(some).toEqual(expected.filter(({ id }) => Number(id) >= 390 && Number(id) <= 1015))
  }
  const columns = 'id, name, price, at, few, tags, place'
  for (const where of ['id between 5390 and 5410', "name = 'name 2121'", '_row_id = 70001']) {
    const read = await engines.sql(`select ${columns} from parquet.\`${path}\` where ${where} order by id`)
    const ids = new Set(read.map(({ id }) => id))
    expect(read.length).toBeGreaterThan(0)
    expect(read).toEqual(expected.filter(({ id }) => ids.has(id)))
  }
}, 300_000)
