import { sql, type EngineDatabase, type PackageDb } from '@fencepost/engine'
import type { TableAddress } from '../catalogs/address.ts'
import { relationsOf } from '../relations.ts'

/** How a catalog's list of tables is. */
export interface ListedCatalog {
  readonly catalog: string
  readonly refreshedAt: string | undefined
  /** Why its last refresh failed: the list is older than that. */
  readonly error: string | undefined
}

export interface ListedTable extends TableAddress {
  readonly health: unknown
  readonly lookedAt: string | undefined
}

export interface TableFilter {
  /** Those that are configured; of others the last list may still be there. */
  readonly catalogs: readonly string[]
  readonly catalog?: string | undefined
  readonly database?: string | undefined
  /** Only tables whose name contains this. */
  readonly search?: string | undefined
  readonly after?: TableAddress | undefined
  readonly limit: number
}

interface TableRow {
  catalog: string
  database: string
  table_name: string
  health: unknown
  looked_at: string | null
}

/** True for a table that was there when its catalog was last listed. */
export async function isListed(db: PackageDb, { catalog, database, table }: TableAddress): Promise<boolean> {
  const { tables } = relationsOf(db)
  const rows = await db.query(
    'inventory.find',
    sql`select from ${tables} where catalog = ${catalog} and database = ${database} and table_name = ${table}`,
  )
  return rows.length > 0
}

/** Returns the tables that fit, in order of their addresses, with their cached health. */
export async function listTables(db: PackageDb, filter: TableFilter): Promise<ListedTable[]> {
  const t = relationsOf(db)
  const { catalogs, catalog = null, database = null, search = null, after, limit } = filter
  const rows = await db.query<TableRow>(
    'inventory.list',
    sql`select listed.catalog, listed.database, listed.table_name, health.health, health.looked_at
          from ${t.tables} listed left join ${t.health} health using (catalog, database, table_name)
         where listed.catalog = any(${catalogs}::text[])
           and (${catalog}::text is null or listed.catalog = ${catalog})
           and (${database}::text is null or listed.database = ${database})
           and (${search}::text is null or strpos(lower(listed.table_name), lower(${search})) > 0)
           and (listed.catalog, listed.database, listed.table_name)
               > (${after?.catalog ?? ''}, ${after?.database ?? ''}, ${after?.table ?? ''})
         order by listed.catalog, listed.database, listed.table_name
         limit ${limit}`,
  )
  return rows.map((row) => ({
    catalog: row.catalog,
    database: row.database,
    table: row.table_name,
    health: row.health,
    lookedAt: row.looked_at ?? undefined,
  }))
}

export async function listCatalogs(db: PackageDb): Promise<ListedCatalog[]> {
  const t = relationsOf(db)
  const rows = await db.query<{ catalog: string; refreshed_at: string | null; error: string | null }>(
    'inventory.catalogs',
    sql`select catalog, refreshed_at, error from ${t.catalogs} order by catalog`,
  )
  return rows.map((row) => ({
    catalog: row.catalog,
    refreshedAt: row.refreshed_at ?? undefined,
    error: row.error ?? undefined,
  }))
}

export async function countTables(db: PackageDb, catalog: string): Promise<number> {
  const { tables } = relationsOf(db)
  const [row] = await db.query<{ count: number }>(
    'inventory.count',
    sql`select count(*)::integer as count from ${tables} where catalog = ${catalog}`,
  )
  return row?.count ?? 0
}

/** How long one process may take to list a catalog before another may. */
const leaseSeconds = 300

/** Takes the turn to list a catalog; false when another process has it, or had it lately enough. */
export async function takeTurn(db: PackageDb, catalog: string, unlessWithinMs: number): Promise<boolean> {
  const t = relationsOf(db)
  const rows = await db.query(
    'inventory.take_turn',
    sql`insert into ${t.catalogs} as kept (catalog, tried_at, refreshing_until)
        values (${catalog}, ${t.now}, ${t.now} + ${leaseSeconds} * interval '1 second')
        on conflict (catalog) do update
           set tried_at = excluded.tried_at, refreshing_until = excluded.refreshing_until
         where coalesce(kept.refreshing_until <= ${t.now}, true)
           and coalesce(kept.tried_at <= ${t.now} - ${unlessWithinMs} * interval '1 millisecond', true)
        returning catalog`,
  )
  return rows.length > 0
}

/** Puts a list of tables in the place of the last one, in one transaction: readers see the one or the other. */
export async function swapTables(
  database: EngineDatabase,
  catalog: string,
  found: { tables: readonly TableAddress[]; skipped: number },
): Promise<void> {
  await database.transaction('inventory.swap', async (db) => {
    const t = relationsOf(db)
    const databases = found.tables.map((one) => one.database)
    const names = found.tables.map((one) => one.table)
    const given = sql`unnest(${databases}::text[], ${names}::text[]) given (database, table_name)`
    await db.query(
      'inventory.gone',
      sql`delete from ${t.tables} kept where catalog = ${catalog}
             and not exists (select from ${given}
                              where given.database = kept.database and given.table_name = kept.table_name)`,
    )
    await db.query(
      'inventory.new',
      sql`insert into ${t.tables} (catalog, database, table_name)
          select ${catalog}, database, table_name from ${given} on conflict do nothing`,
    )
    await db.query(
      'inventory.health_gone',
      sql`delete from ${t.health} kept where catalog = ${catalog}
             and not exists (select from ${t.tables} listed
                              where (listed.catalog, listed.database, listed.table_name)
                                    = (kept.catalog, kept.database, kept.table_name))`,
    )
    await db.query(
      'inventory.refreshed',
      sql`update ${t.catalogs} set refreshed_at = ${t.now}, error = null, refreshing_until = null,
                 skipped = ${found.skipped} where catalog = ${catalog}`,
    )
  })
}

/** Notes that a catalog could not be listed: its last list stays. */
export async function keepStale(db: PackageDb, catalog: string, error: string): Promise<void> {
  const t = relationsOf(db)
  await db.query(
    'inventory.stale',
    sql`update ${t.catalogs} set error = ${error}, refreshing_until = null where catalog = ${catalog}`,
  )
}
