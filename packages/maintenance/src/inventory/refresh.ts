import type { EngineDatabase, Logger } from '@fencepost/engine'
import type { Catalog, Namespace } from '@fencepost/iceberg'
import { addressOf, type TableAddress } from '../catalogs/address.ts'
import type { Catalogs } from '../catalogs/catalogs.ts'
import { countTables, keepStale, swapTables, takeTurn } from './inventory.ts'

export type Refreshed =
  | { readonly catalog: string; readonly refreshed: true; readonly tables: number }
  /** Another process lists it, or listed it lately. */
  | { readonly catalog: string; readonly refreshed: false; readonly why: 'not_due' }
  | { readonly catalog: string; readonly refreshed: false; readonly why: 'failed'; readonly error: string }

export interface RefreshOptions {
  readonly unlessWithinMs: number
  /**
   * Accept an empty list from a catalog that had tables. A regular refresh does not: an unmounted folder, a wrong database
   * or a token without grants look just like it.
   */
  readonly acceptsEmpty: boolean
  readonly logger: Logger
}

const requestsAtOnce = 8
/** Deeper namespaces are not looked into. */
const maxDepth = 32

/** Lists every catalog anew, each by itself: one that is down keeps its last list and holds up no other. */
export async function refreshInventory(
  database: EngineDatabase,
  catalogs: Catalogs,
  options: RefreshOptions,
): Promise<Refreshed[]> {
  return Promise.all(catalogs.names.map((name) => refreshCatalog(database, catalogs, name, options)))
}

async function refreshCatalog(
  database: EngineDatabase,
  catalogs: Catalogs,
  name: string,
  { unlessWithinMs, acceptsEmpty, logger }: RefreshOptions,
): Promise<Refreshed> {
  if (!(await takeTurn(database, name, unlessWithinMs))) return { catalog: name, refreshed: false, why: 'not_due' }
  try {
    const { catalog } = await catalogs.open(name)
    const found = await findTables(name, catalog)
    if (found.tables.length === 0 && !acceptsEmpty) await refuseToForget(database, name)
    await swapTables(database, name, found)
    return { catalog: name, refreshed: true, tables: found.tables.length }
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error)
    logger.warn({ err: error, catalog: name }, 'catalog_not_listed')
    await keepStale(database, name, message)
    return { catalog: name, refreshed: false, why: 'failed', error: message }
  }
}

async function refuseToForget(database: EngineDatabase, name: string): Promise<void> {
  const known = await countTables(database, name)
  if (known === 0) return
  throw new Error(
    `The catalog lists no tables, but had ${known}. They are kept; POST /catalogs/refresh accepts the empty list.`,
  )
}

/** Walks all namespaces, with a few requests at a time. */
async function findTables(name: string, catalog: Catalog): Promise<{ tables: TableAddress[]; skipped: number }> {
  const tables: TableAddress[] = []
  let skipped = 0
  let level: readonly Namespace[] = await catalog.listNamespaces()
  for (let depth = 1; level.length > 0 && depth <= maxDepth; depth += 1) {
    const below: Namespace[] = []
    await eachOf(level, async (namespace) => {
      for (const identifier of await catalog.listTables(namespace)) {
        const address = addressOf(name, identifier)
        if (address === undefined) skipped += 1
        else tables.push(address)
      }
      // A server that does not know of nested namespaces may answer with all of them again.
      for (const one of await catalog.listNamespaces(namespace)) if (isChild(one, namespace)) below.push(one)
    })
    level = below
  }
  return { tables, skipped }
}

function isChild(one: Namespace, parent: Namespace): boolean {
  return one.length === parent.length + 1 && parent.every((level, nth) => one[nth] === level)
}

async function eachOf<T>(all: readonly T[], work: (one: T) => Promise<void>): Promise<void> {
  const rest = all.values()
  const lane = async () => {
    for (const one of rest) await work(one)
  }
  await Promise.all(Array.from({ length: Math.min(requestsAtOnce, all.length) }, lane))
}
