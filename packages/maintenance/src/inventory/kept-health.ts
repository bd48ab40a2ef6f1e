import { sql, type PackageDb } from '@fencepost/engine'
import type { TableAddress } from '../catalogs/address.ts'
import { relationsOf } from '../relations.ts'

/** What a look at a table found, and when. */
export interface KeptHealth {
  readonly lookedAt: string
  readonly health: Readonly<Record<string, unknown>>
}

interface Row {
  looked_at: string
  health: Readonly<Record<string, unknown>>
}

/** Keeps what a look found, in the place of what the one before found. */
export async function keepHealth(
  db: PackageDb,
  { catalog, database, table }: TableAddress,
  health: object,
): Promise<KeptHealth> {
  const t = relationsOf(db)
  const [row] = await db.query<Row>(
    'health.keep',
    sql`insert into ${t.health} (catalog, database, table_name, looked_at, health)
        values (${catalog}, ${database}, ${table}, ${t.now}, ${JSON.stringify(health)}::jsonb)
        on conflict (catalog, database, table_name) do update
           set looked_at = excluded.looked_at, health = excluded.health
        returning looked_at, health`,
  )
  if (row === undefined) throw new Error('an insert returns its row')
  return { lookedAt: row.looked_at, health: row.health }
}

/** Undefined for a table that nobody has looked at. */
export async function getHealth(
  db: PackageDb,
  { catalog, database, table }: TableAddress,
): Promise<KeptHealth | undefined> {
  const t = relationsOf(db)
  const [row] = await db.query<Row>(
    'health.get',
    sql`select looked_at, health from ${t.health}
         where catalog = ${catalog} and database = ${database} and table_name = ${table}`,
  )
  return row && { lookedAt: row.looked_at, health: row.health }
}
