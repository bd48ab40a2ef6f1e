import { randomUUID } from 'node:crypto'
import { mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import {
  below,
  DuckDb,
  HadoopCatalog,
  IcebergError,
  LocalStorage,
  serializeTableMetadata,
  type Catalog,
  type LoadedTable,
  type TableIdentifier,
} from '@fencepost/iceberg'
import { auditLog } from './audit-log.ts'
import { countries } from './countries.ts'
import { customers } from './customers.ts'
import type { LakeTable } from './lake-table.ts'
import { orders } from './orders.ts'
import { pageViews } from './page-views.ts'
import { readings } from './readings.ts'

// The lake is made in three steps: a marker that says "making", the files of all tables, then the tables in the catalog
// and a marker that says "made". Files are written while no catalog knows them. When it ends halfway, the marker says so,
// and the next time everything that was made below the folder is removed first. A table of the same name that is
// elsewhere is not ours, and is left alone.

/** The tables of the sample lake, the quickest first. */
export const sampleLakeTables: readonly LakeTable[] = [countries, readings, customers, orders, auditLog, pageViews]

export interface SampleLakeOptions {
  readonly signal?: AbortSignal
  readonly onProgress?: (progress: SampleLakeProgress) => void
  /** The present time; everything is dated before it. Default: now. */
  readonly now?: Date
  /** Default 1: the whole lake. A tenth has about a tenth of the files and snapshots. */
  readonly scale?: number
}

export interface SampleLakeProgress {
  readonly table: string
  readonly story: string
  /** The share of this table that is done, from 0 to 1. */
  readonly tableDone: number
  /** The share of the lake. */
  readonly done: number
}

export interface SampleLake {
  /** False: it was there already. */
  readonly made: boolean
  readonly tables: readonly TableIdentifier[]
  readonly seconds: number
}

const markerVersion = 1
/** About how long each takes, for the progress of the whole. */
const weights: Readonly<Record<string, number>> = {
  countries: 1,
  readings: 6,
  customers: 8,
  orders: 12,
  audit_log: 23,
  page_views: 50,
}

/** Makes the sample lake in a local folder and in a catalog, unless it is there. The rows are the same every time. */
export async function makeSampleLake(
  catalog: Catalog,
  folder: string,
  { signal, onProgress, now = new Date(), scale = 1 }: SampleLakeOptions = {},
): Promise<SampleLake> {
  const startedAt = performance.now()
  const tables = sampleLakeTables.map(identifierOf)
  if ((await markerOf(folder)) === 'made') return { made: false, tables, seconds: 0 }
  await removeHalfMade(catalog, folder)
  await assertNoTables(catalog, tables)
  await writeMarker(folder, 'making')
  const made = await makeTables(folder, { nowMs: now.getTime(), scale, signal, onProgress })
  for (const table of made) await publish(catalog, table)
  await writeMarker(folder, 'made')
  return { made: true, tables, seconds: (performance.now() - startedAt) / 1000 }
}

interface Makings {
  readonly nowMs: number
  readonly scale: number
  readonly signal: AbortSignal | undefined
  readonly onProgress: SampleLakeOptions['onProgress']
}

/** Writes the files of all tables. They are made in two lanes, of which the last table is one: it is half of the work. */
async function makeTables(folder: string, makings: Makings): Promise<LoadedTable[]> {
  // Every statement is small, and more threads are in each other's way.
  const duckDb = await DuckDb.open({ threads: 1 })
  const failed = new AbortController()
  const signal = AbortSignal.any([failed.signal, ...(makings.signal === undefined ? [] : [makings.signal])])
  const done = new Map<string, number>()
  const makeLane = async (lane: readonly LakeTable[]): Promise<LoadedTable[]> => {
    const made: LoadedTable[] = []
    for (const lakeTable of lane) {
      signal.throwIfAborted()
      const { namespace, name, story } = lakeTable
      const onProgress = (tableDone: number): void => {
        done.set(name, tableDone)
        const ofAll = Object.entries(weights).reduce((sum, [each, weight]) => sum + weight * (done.get(each) ?? 0), 0)
        makings.onProgress?.({ table: `${namespace}.${name}`, story, tableDone, done: ofAll / 100 })
      }
      onProgress(0)
      const location = below(folder, namespace, name)
      const making = { ...makings, location, storage: new LocalStorage(), duckDb, signal, onProgress }
      made.push((await lakeTable.make(making)).loaded)
      onProgress(1)
    }
    return made
  }
  try {
    const lanes = [sampleLakeTables.slice(0, -1), sampleLakeTables.slice(-1)].map(async (lane) => {
      try {
        return await makeLane(lane)
      } catch (error) {
        failed.abort(error)
        throw error
      }
    })
    const results = await Promise.allSettled(lanes)
    const refused = results.find((result) => result.status === 'rejected')
    if (refused !== undefined) throw refused.reason
    return results.flatMap((result) => (result.status === 'fulfilled' ? result.value : []))
  } finally {
    await duckDb.close()
  }
}

function identifierOf({ namespace, name }: Pick<LakeTable, 'namespace' | 'name'>): TableIdentifier {
  return { namespace: [namespace], name }
}

/** Puts a table with a past into a catalog. */
async function publish(catalog: Catalog, { identifier, metadata, storage }: LoadedTable): Promise<void> {
  await ignoring('namespace_exists', catalog.createNamespace(identifier.namespace))
  const isFolders = catalog instanceof HadoopCatalog
  const file = isFolders ? 'v1.metadata.json' : `00000-${randomUUID()}.metadata.json`
  const location = below(metadata.location, 'metadata', file)
  await storage.write(location, serializeTableMetadata(metadata, location))
  if (!isFolders) await catalog.registerTable(identifier, location)
}

async function removeHalfMade(catalog: Catalog, folder: string): Promise<void> {
  if ((await markerOf(folder)) !== 'making') return
  for (const lakeTable of sampleLakeTables) {
    const location = below(folder, lakeTable.namespace, lakeTable.name)
    const identifier = identifierOf(lakeTable)
    const known = await ignoring('table_not_found', catalog.loadTable(identifier))
    if (known?.metadata.location === location && !(catalog instanceof HadoopCatalog)) {
      await catalog.dropTable(identifier)
    }
    await rm(join(folder, lakeTable.namespace, lakeTable.name), { recursive: true, force: true })
  }
}

async function assertNoTables(catalog: Catalog, tables: readonly TableIdentifier[]): Promise<void> {
  for (const identifier of tables) {
    const known = await ignoring('table_not_found', catalog.loadTable(identifier))
    if (known === undefined) continue
    const name = [...identifier.namespace, identifier.name].join('.')
    throw new IcebergError(
      'table_exists',
      `The catalog ${catalog.name} has a table ${name} already, at ${known.metadata.location}. ` +
        'The sample lake was not made. Use another catalog for it, or rename the table.',
      { details: { catalog: catalog.name, table: name } },
    )
  }
}

function markerPath(folder: string): string {
  return join(folder, '.sample-lake.json')
}

async function markerOf(folder: string): Promise<'making' | 'made' | undefined> {
  try {
    const marker = JSON.parse(await readFile(markerPath(folder), 'utf8')) as { version?: unknown; state?: unknown }
    return marker.version === markerVersion && marker.state === 'made' ? 'made' : 'making'
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    return 'making'
  }
}

async function writeMarker(folder: string, state: 'making' | 'made'): Promise<void> {
  await mkdir(folder, { recursive: true })
  const draft = `${markerPath(folder)}.tmp`
  await writeFile(draft, `${JSON.stringify({ version: markerVersion, state })}\n`)
  await rename(draft, markerPath(folder))
}

/** What was asked for; undefined when it failed with this code. */
async function ignoring<T>(code: IcebergError['code'], asked: Promise<T>): Promise<T | undefined> {
  try {
    return await asked
  } catch (error) {
    if (error instanceof IcebergError && (error.code === code || isMissing(code, error))) return undefined
    throw error
  }
}

/** A table cannot be in a namespace that is not there. */
function isMissing(code: IcebergError['code'], error: IcebergError): boolean {
  return code === 'table_not_found' && error.code === 'namespace_not_found'
}
