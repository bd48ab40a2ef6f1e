import { tableRoutes, type CatalogState, type ListedTable } from '@fencepost/client'
import type { Engine, Logger } from '@fencepost/engine'
import { ApiError, endpoint, type Endpoint } from '@fencepost/server'
import { databaseText, lockKeyOf, parseDatabase, parseTable } from '../catalogs/address.ts'
import type { Catalogs } from '../catalogs/catalogs.ts'
import { listCatalogs, listTables, type TableFilter } from '../inventory/inventory.ts'
import { jobsOfTables } from '../inventory/jobs-of-tables.ts'
import { refreshInventory } from '../inventory/refresh.ts'

const defaultLimit = 100

/** The inventory: tables and catalogs. */
export function tableEndpoints(engine: Engine, catalogs: Catalogs, logger: Logger): readonly Endpoint[] {
  const { database } = engine
  const states = async (): Promise<CatalogState[]> => {
    const known = new Map((await listCatalogs(database)).map((one) => [one.catalog, one]))
    return catalogs.names.map((catalog) => ({
      catalog,
      type: catalogs.typeOf(catalog) ?? '',
      is_default: catalog === catalogs.defaultName,
      refreshed_at: known.get(catalog)?.refreshedAt ?? null,
      error: known.get(catalog)?.error ?? null,
    }))
  }
  return [
    endpoint(tableRoutes.listTables, async ({ query }) => {
      const limit = query.limit ?? defaultLimit
      const found = await listTables(database, {
        ...filterOf(query, catalogs.defaultName),
        catalogs: catalogs.names,
        limit: limit + 1,
      })
      const tables = found.slice(0, limit)
      const stale = new Set((await listCatalogs(database)).flatMap(({ catalog, error }) => (error ? catalog : [])))
      const jobs = await jobsOfTables(database, tables.map(lockKeyOf))
      const body = tables.map((table): ListedTable => {
        const of = jobs.get(lockKeyOf(table))
        return {
          catalog: table.catalog,
          database: databaseText(table, catalogs.defaultName),
          table_name: table.table,
          stale: stale.has(table.catalog),
          health: summaryOf(table.health),
          health_at: table.lookedAt ?? null,
          last_job: of?.lastJob ?? null,
          locked_by: of?.lockedBy ?? null,
        }
      })
      const last = tables.at(-1)
      const next =
        found.length > limit && last !== undefined ? `${last.catalog}:${last.database}.${last.table}` : undefined
      return { body, ...(next === undefined ? {} : { headers: { 'next-after': encodeURIComponent(next) } }) }
    }),
    endpoint(tableRoutes.listCatalogs, async () => ({ body: await states() })),
    endpoint(tableRoutes.refreshCatalogs, async () => {
      await refreshInventory(database, catalogs, { unlessWithinMs: 0, acceptsEmpty: true, logger })
      return { body: await states() }
    }),
  ]
}

function filterOf(
  query: {
    database?: string | undefined
    catalog?: string | undefined
    search?: string | undefined
    after?: string | undefined
  },
  defaultCatalog: string,
): Omit<TableFilter, 'limit' | 'catalogs'> {
  const wanted =
    query.database === undefined ? undefined : parseDatabase(query.database, query.catalog ?? defaultCatalog)
  if (query.database !== undefined && wanted === undefined) {
    throw new ApiError('table_name_invalid', 'The database has a name that cannot be addressed.')
  }
  const after = query.after === undefined ? undefined : parseTable(decoded(query.after), defaultCatalog)
  if (query.after !== undefined && after === undefined) {
    throw new ApiError(
      'request_invalid',
      'The request is not valid: query.after: give the Next-After of the page before.',
    )
  }
  return { catalog: wanted?.catalog ?? query.catalog, database: wanted?.database, search: query.search, after }
}

// A header cannot hold every character that a name may have.
function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

/** What a list shows of a table's health: the rest is at its own address. */
function summaryOf(health: unknown): unknown {
  if (typeof health !== 'object' || health === null) return null
  const { score, band, issues, recommended_actions: recommended } = health as Partial<Record<string, unknown>>
  const codes = Array.isArray(issues) ? (issues as { code: string; severity: string }[]) : []
  return {
    score: score ?? null,
    band: band ?? null,
    issues: codes.map(({ code, severity }) => ({ code, severity })),
    recommended_actions: (Array.isArray(recommended) ? (recommended as { action: string }[]) : []).map(
      ({ action }) => action,
    ),
  }
}
