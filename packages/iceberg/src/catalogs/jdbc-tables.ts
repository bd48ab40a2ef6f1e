import type pg from 'pg'
import { IcebergError } from '../errors.ts'
import { below } from '../storage/location.ts'
import type { Namespace, TableIdentifier } from './catalog.ts'

// The relations of Iceberg's JDBC catalog, which Spark, Flink, Trino and PyIceberg share. V0 has tables only; V1 has a
// column that tells views from tables, null meaning table. Which one a database has is seen by that column.

export type JdbcLayout = 'V0' | 'V1'

const layoutQuery = `
  select exists (select from pg_attribute
                  where attrelid = to_regclass('iceberg_tables') and attname = 'iceberg_type' and not attisdropped) as v1,
         to_regclass('iceberg_tables') is not null as tables,
         to_regclass('iceberg_namespace_properties') is not null as namespaces`

/** What is on the search path: a layout when there are tables, and whether both relations are there. */
export async function layoutOf(
  client: pg.Pool | pg.ClientBase,
): Promise<{ layout: JdbcLayout | undefined; complete: boolean }> {
  const { rows } = await client.query<{ v1: boolean; tables: boolean; namespaces: boolean }>(layoutQuery)
  const { v1 = false, tables = false, namespaces = false } = rows[0] ?? {}
  return { layout: !tables ? undefined : v1 ? 'V1' : 'V0', complete: tables && namespaces }
}

/** Makes the relations that are missing. A V0 database stays one unless V1 is asked for. */
export async function createRelations(client: pg.Pool | pg.ClientBase, layout: JdbcLayout): Promise<void> {
  const statements = [
    `create table if not exists iceberg_tables (
       catalog_name varchar(255) not null,
       table_namespace varchar(255) not null,
       table_name varchar(255) not null,
       metadata_location varchar(1000),
       previous_metadata_location varchar(1000),
       primary key (catalog_name, table_namespace, table_name))`,
    `create table if not exists iceberg_namespace_properties (
       catalog_name varchar(255) not null,
       namespace varchar(255) not null,
       property_key varchar(255),
       property_value varchar(1000),
       primary key (catalog_name, namespace, property_key))`,
    ...(layout === 'V1' ? ['alter table iceberg_tables add column if not exists iceberg_type varchar(5)'] : []),
  ]
  for (const statement of statements) {
    await client.query(statement).catch((error: unknown) => {
      // Two that create the same at once: one of them is told so by an index of Postgres itself.
      if ((error as { code?: string }).code !== '23505') throw error
    })
  }
}

/** Postgres answered, and did not do it. Class 08 is a lost connection, 57 a server that is going down. */
export function isRefusal(error: unknown): boolean {
  const code = (error as { code?: unknown }).code
  return typeof code === 'string' && /^[0-9A-Z]{5}$/.test(code) && !/^(08|57)/.test(code)
}

/** A statement; that Postgres cannot be reached is told in the words of this package. */
export async function query<Row extends pg.QueryResultRow>(
  pool: pg.Pool,
  text: string,
  values: readonly unknown[],
): Promise<pg.QueryResult<Row>> {
  try {
    return await pool.query<Row>(text, [...values])
  } catch (cause) {
    if (isRefusal(cause)) throw cause
    const message = `The database of a JDBC catalog could not be reached: ${(cause as Error).message}`
    throw new IcebergError('catalog_unavailable', message, { cause })
  }
}

/** A namespace as one text. Levels are joined by dots, so none can hold one. */
export function namespaceText(namespace: Namespace): string {
  if (namespace.length === 0) throw invalidName('A namespace has no level', 'give at least one')
  for (const level of namespace) {
    if (level === '' || level.includes('.') || level.includes('\0')) {
      throw invalidName(`"${level}" cannot be a level of a namespace in a JDBC catalog`, 'levels are joined by dots')
    }
  }
  return limited(namespace.join('.'), 'A namespace')
}

export function checkedName({ namespace, name }: TableIdentifier): { namespace: string; name: string } {
  if (name === '' || name.includes('\0')) throw invalidName(`"${name}" cannot name a table`, 'give it a name')
  return { namespace: namespaceText(namespace), name: limited(name, 'The name of a table') }
}

function limited(text: string, what: string): string {
  if (text.length > 255) throw invalidName(`${what} has ${text.length} characters`, 'the catalog holds 255')
  return text
}

function invalidName(what: string, why: string): IcebergError {
  return new IcebergError('name_invalid', `${what}: ${why}.`)
}

/**
 * A folder below the warehouse for a table that is given no location, as Java puts it. No two tables share one, but one
 * may lie in another: that of `b` in `a` holds those of the namespace `a.b`.
 */
export function defaultLocation(warehouse: string, { namespace, name }: TableIdentifier): string {
  for (const part of [...namespace, name]) {
    if (part === '.' || part === '..' || part.includes('/')) {
      throw invalidName(`"${part}" cannot be a folder of the warehouse`, 'give the table a location')
    }
  }
  return below(warehouse, ...namespace, name)
}
