import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll } from 'vitest'
import {
  createTable,
  DuckDb,
  HadoopCatalog,
  manifestsOf,
  readManifest,
  type Field,
  type ManifestEntry,
  type NewTable,
  type ScannedRow,
  type ScanOptions,
  type Table,
} from '../../src/index.ts'

/** A folder of tables and a DuckDB, for the tests of one file. */
export function bed() {
  let folder = ''
  let duckdb: DuckDb | undefined
  let catalog: HadoopCatalog | undefined
  let made = 0
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'fencepost-write-test-'))
    catalog = new HadoopCatalog({ name: 'files', warehouse: folder })
    duckdb = await DuckDb.open({ threads: 1 })
    await catalog.createNamespace(['db'])
  })
  afterAll(async () => {
    await duckdb?.close()
    await rm(folder, { recursive: true, force: true })
  })
  const present = <T>(value: T | undefined): T => {
    if (value === undefined) throw new Error('the bed is made before all tests')
    return value
  }
  return {
    catalog: () => present(catalog),
    duckdb: () => present(duckdb),
    newTable: async (table: NewTable): Promise<Table> => {
      made += 1
      const identifier = { namespace: ['db'], name: `t${made}` }
      return await createTable(present(catalog), identifier, table, { duckDb: present(duckdb) })
    },
    rows: async (table: Table, options: ScanOptions = {}): Promise<ScannedRow[]> => {
      const rows: ScannedRow[] = []
      for await (const batch of table.scan(options)) rows.push(...batch)
      return rows
    },
  }
}

export function field(id: number, name: string, type: Field['type'], required = false): Field {
  return { id, name, required, type }
}

/** The entries of the present snapshot, tombstones included when asked for. */
export async function entriesOf({ loaded }: Table, deleted = false): Promise<ManifestEntry[]> {
  const { metadata, storage } = loaded
  const head = metadata.snapshots.find((snapshot) => snapshot.snapshotId === metadata.currentSnapshotId)
  if (head === undefined) return []
  const entries: ManifestEntry[] = []
  for (const manifest of await manifestsOf(loaded, head)) {
    entries.push(...readManifest(await storage.read(manifest.manifestPath), manifest, { deleted }))
  }
  return entries
}

/** Every file below a folder. */
export async function filesBelow({ loaded }: Table, folder = loaded.metadata.location): Promise<string[]> {
  const files: string[] = []
  for await (const { location } of loaded.storage.list(folder)) files.push(location)
  return files.toSorted()
}
