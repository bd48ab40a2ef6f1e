import type { EngineDatabase, Logger } from '@fencepost/engine'
import type { Catalog, Namespace } from '@fencepost/iceberg'
import { addressOf, type TableAddress } from '../catalogs/address.ts'
import type { Catalogs } from '../catalogs/catalogs.ts'
import { keepStale, swapTables, takeTurn } from './inventory.ts'

export type Refreshed =
  | { readonly catalog: string; readonly refreshed: true; readonly tables: number }
  /** Another process lists it, or listed it lately. */
  | { readonly catalog: string; readonly refreshed: false; readonly why: 'not_due' }
  | { readonly catalog: string; readonly refreshed: false; readonly why: 'failed'; readonly error: string }

const requestsAtOnce = 8

/** Lists every catalog anew, each by itself: one that is down keeps its last list and holds up no other. */
export async function refreshInventory(
  database: EngineDatabase,
  catalogs: Catalogs,
  options: { unlessWithinMs: number; logger: Logger },
): Promise<Refreshed[]> {
  return Promise.all(catalogs.names.map((name) => refreshCatalog(database, catalogs, name, options)))
}

async function refreshCatalog(
  database: EngineDatabase,
  catalogs: Catalogs,
  name: string,
  { unlessWithinMs, logger }: { unlessWithinMs: number; logger: Logger },
): Promise<Refreshed> {
  if (!(await takeTurn(database, name, unlessWithinMs))) return { catalog: name, refreshed: false, why: 'not_due' }
  try {
    const { catalog } = await catalogs.open(name)
    const found = await findTables(name, catalog)
    await swapTables(database, name, found)
    return { catalog: name, refreshed: true, tables: found.tables.length }
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error)
    logger.warn({ err: error, catalog: name }, 'catalog_not_listed')
    await keepStale(database, name, message)
    return { catalog: name, refreshed: false, why: 'failed', error: message }
  }
}

/** Walks all namespaces, with a few requests at a time. */
async function findTables(name: string, catalog: Catalog): Promise<{ tables: TableAddress[]; skipped: number }> {
  const tables: TableAddress[] = []
  let skipped = 0
  let level: readonly Namespace[] = await catalog.listNamespaces()
  while (level.length > 0) {
    const below: Namespace[] = []
    await eachOf(level, async (namespace) => {
      for (const identifier of await catalog.listTables(namespace)) {
        const address = addressOf(name, identifier)
        if (address === undefined) skipped += 1
        else tables.push(address)
      }
      below.push(...(await catalog.listNamespaces(namespace)))
    })
    level = below
  }
  return { tables, skipped }
}

async function eachOf<T>(all: readonly T[], work: (one: T) => Promise<void>): Promise<void> {
  const rest = all.values()
  const lane = async () => {
    for (const one of rest) await work(one)
  }
  await Promise.all(Array.from({ length: Math.min(requestsAtOnce, all.length) }, lane))
}
