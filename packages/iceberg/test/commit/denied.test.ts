import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createTestDatabase, type TestDatabase } from '../../../engine/test/database.ts'
import {
  commitTable,
  createTable,
  DuckDb,
  HadoopCatalog,
  JdbcCatalog,
  manifestsOf,
  openTable,
  planFiles,
  readManifest,
  RestCatalog,
  scanRows,
  schemaOf,
  type Catalog,
  type FormatVersion,
  type Table,
  type TableMetadata,
} from '../../src/index.ts'
import { openRestServer, type RestServer } from '../catalogs/rest-server.ts'
import { field } from '../write/bed.ts'
import { denials, denying, type Denial } from './faults.ts'

// The catalog applies a commit and says that it did not, as it does behind a gateway that repeats requests. Whatever
// the commit does, it is done once, its writer is told so, and every file that the table needs is there.

let root: string
let database: TestDatabase
let pool: pg.Pool
let duckDb: DuckDb
const servers: RestServer[] = []
let count = 0
beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), 'fencepost-denied-'))
  database = await createTestDatabase()
  pool = new pg.Pool({ connectionString: database.url })
  duckDb = await DuckDb.open({ threads: 1 })
})
afterAll(async () => {
  for (const server of servers) await server.close()
  await duckDb.close()
  await pool.end()
  await database.drop()
  await rm(root, { recursive: true, force: true })
})

interface Kind {
  /** What tables are made in, and others commit to. */
  readonly sound: Catalog
  /** The same, or a client of it. */
  readonly client: Catalog
}
const kinds: Record<string, () => Promise<Kind>> = {
  'a file system catalog': async () => {
    const sound = new HadoopCatalog({ name: 'files', warehouse: `${root}/h${(count += 1)}` })
    return { sound, client: sound }
  },
  'a JDBC catalog': async () => {
    const options = { name: `c${(count += 1)}`, warehouse: `${root}/j${count}`, database: pool }
    const sound = await JdbcCatalog.open(options)
    return { sound, client: sound }
  },
  'a REST catalog': async () => {
    const sound = new HadoopCatalog({ name: 'files', warehouse: `${root}/r${(count += 1)}` })
    const server = await openRestServer(sound)
    servers.push(server)
    return { sound, client: await RestCatalog.open({ name: 'rest', url: server.url }) }
  },
}

const cases: readonly (readonly [Denial, boolean])[] = [
  ['repeated', false],
  ['conflict', true],
]

interface Change {
  formatVersion?: FormatVersion
  make: (table: Table, file: string) => Promise<unknown>
  /** The ids after it; default: those before. */
  ids?: number[]
  shows?: (metadata: TableMetadata) => boolean
}

const row = (id: number) => ({ id: BigInt(id) })
const seeded = [1, 2, 3]
const theirs = 100

const changes: Record<string, Change> = {
  append: { make: (table) => table.append([row(4)]), ids: [1, 2, 3, 4] },
  overwrite: { make: (table) => table.overwrite([row(4)]), ids: [4] },
  'delete files': { make: (table, file) => table.deleteFiles([file]), ids: [] },
  'delete positions (v2)': { make: (table, file) => table.deletePositions(new Map([[file, [0]]])), ids: [2, 3] },
  'delete positions (v3)': {
    formatVersion: 3,
    make: (table, file) => table.deletePositions(new Map([[file, [0]]])),
    ids: [2, 3],
  },
  'delete by key': { make: (table) => table.deleteEqual(['id'], [row(2)], { append: [row(5)] }), ids: [1, 3, 5] },
  'create a branch': { make: (table) => table.createBranch('b'), shows: (m) => m.refs.has('b') },
  'create a tag': { make: (table) => table.createTag('t'), shows: (m) => m.refs.has('t') },
  'drop a ref': { make: (table) => table.dropRef('old'), shows: (m) => !m.refs.has('old') },
  'roll back': {
    make: (table) => table.rollbackTo(table.metadata.snapshots[0]?.snapshotId ?? 0n),
    ids: [1, 2],
  },
  'add a column': {
    make: (table) => table.updateSchema([{ change: 'add', name: 'c', type: { type: 'string' } }]),
    shows: (m) => schemaOf(m).fields.length === 2,
  },
  'add a partition field': {
    make: (table) => table.updatePartitionSpec([{ change: 'add', column: 'id', transform: { name: 'identity' } }]),
    shows: (m) => m.partitionSpecs.length === 2,
  },
  'set the sort order': {
    make: (table) => table.updateSortOrder([{ column: 'id' }]),
    shows: (m) => m.defaultSortOrderId !== 0,
  },
  'set properties': { make: (table) => table.setProperties({ a: 'b' }), shows: (m) => m.properties['a'] === 'b' },
  'remove properties': {
    make: (table) => table.removeProperties(['owner']),
    shows: (m) => !('owner' in m.properties),
  },
  upgrade: { make: (table) => table.upgradeFormatVersion(3), shows: (m) => m.formatVersion === 3 },
}

async function seededTable(catalog: Catalog, formatVersion: FormatVersion = 2): Promise<Table> {
  const table = await createTable(
    catalog,
    { namespace: ['db'], name: 't' },
    {
      schema: { fields: [field(1, 'id', { type: 'long' })] },
      formatVersion,
      properties: { owner: 'tests', 'commit.retry.min-wait-ms': '1', 'commit.status-check.min-wait-ms': '1' },
    },
    { duckDb },
  )
  await table.append([row(1), row(2)])
  await table.createTag('old')
  await table.overwrite(seeded.map(row))
  return table
}

async function fileOf(table: Table): Promise<string> {
  for await (const [first] of planFiles(table.loaded)) if (first !== undefined) return first.file.filePath
  return ''
}

async function idsOf(table: Table): Promise<number[]> {
  const ids: number[] = []
  for await (const rows of scanRows(table.loaded, { duckDb })) ids.push(...rows.map((r) => Number(r['id'])))
  return ids.toSorted((a, b) => a - b)
}

async function expectWhole({ loaded }: Table): Promise<void> {
  for (const snapshot of loaded.metadata.snapshots) {
    for (const manifest of await manifestsOf(loaded, snapshot)) {
      const entries = readManifest(await loaded.storage.read(manifest.manifestPath), manifest)
      for (const { file } of entries) expect(await loaded.storage.exists(file.filePath)).toBe(true)
    }
  }
}

describe.each(Object.keys(kinds))('a change that %s applies and denies', (kind) => {
  test.each(Object.keys(changes))('is made once: %s', { timeout: 60_000 }, async (name) => {
    const change = changes[name] ?? expect.fail()
    for (const [denial, othersFollow] of cases) {
      const { sound, client } = await (kinds[kind] ?? expect.fail())()
      await sound.createNamespace(['db'])
      const seeder = await seededTable(sound, change.formatVersion)
      const follow = async (): Promise<void> => {
        await seeder.refresh()
        await seeder.append([row(theirs)])
      }
      const catalog = denying(client, 1, denial, othersFollow ? follow : undefined)
      const table = await openTable(catalog, seeder.loaded.identifier, { duckDb })
      await change.make(table, await fileOf(seeder))
      await seeder.refresh()
      const wanted = [...(change.ids ?? seeded), ...(othersFollow ? [theirs] : [])]
      expect(await idsOf(seeder), `${denial} ${othersFollow}`).toEqual(wanted)
      expect(change.shows?.(seeder.metadata) ?? true).toBe(true)
      await expectWhole(seeder)
    }
  })

  test('is made once: expire snapshots', async () => {
    for (const denial of denials) {
      const { sound, client } = await (kinds[kind] ?? expect.fail())()
      await sound.createNamespace(['db'])
      const seeder = await seededTable(sound)
      await seeder.dropRef('old')
      const [first] = seeder.metadata.snapshots
      const outcome = await commitTable(denying(client, 1, denial), seeder.loaded.identifier, async () => ({
        files: [],
        requirements: [],
        updates: [{ action: 'remove-snapshots', snapshotIds: [first?.snapshotId ?? 0n] }],
      }))
      expect(outcome.outcome).toBe('applied')
      await seeder.refresh()
      expect(seeder.metadata.snapshots).toHaveLength(1)
      await expectWhole(seeder)
    }
  })
})
