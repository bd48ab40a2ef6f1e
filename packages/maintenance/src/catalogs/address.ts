import type { TableIdentifier } from '@fencepost/iceberg'

/*
 * How tables are addressed, in paths, filters, locks and the inventory: one rule.
 *
 * A database is the levels of a namespace with dots between them: `sales`, `sales.eu`. In another catalog than the default
 * one its name comes first, with a colon: `archive:sales.eu`. A table adds its own name, after a slash in paths and after
 * the last dot in `?table=`. Names are one to 255 characters without control characters and without . : / \ " and the
 * back quote: a table whose names have those is not addressed, and the inventory counts it as such.
 */

/** Where a table is. */
export interface TableAddress {
  readonly catalog: string
  /** The levels of its namespace, with dots between them. */
  readonly database: string
  readonly table: string
}

const namePattern = /^[^\p{Cc}\p{Cs}.:/\\"`]{1,255}$/u

/** True for a name that can be part of an address. */
export function isName(text: string): boolean {
  return namePattern.test(text) && text.trim() !== ''
}

/** Reads a database as it stands in a path; undefined for one that cannot be. */
export function parseDatabase(
  text: string,
  defaultCatalog: string,
): Pick<TableAddress, 'catalog' | 'database'> | undefined {
  const [first = '', second, ...rest] = text.split(':')
  if (rest.length > 0) return undefined
  const [catalog, database] = second === undefined ? [defaultCatalog, first] : [first, second]
  return isName(catalog) && database.split('.').every(isName) ? { catalog, database } : undefined
}

/** Reads database and table as they stand in a path. */
export function parseAddress(database: string, table: string, defaultCatalog: string): TableAddress | undefined {
  const found = parseDatabase(database, defaultCatalog)
  return found !== undefined && isName(table) ? { ...found, table } : undefined
}

/** Reads `database.table`, as filters have it. */
export function parseTable(text: string, defaultCatalog: string): TableAddress | undefined {
  const dot = text.lastIndexOf('.')
  return dot < 0 ? undefined : parseAddress(text.slice(0, dot), text.slice(dot + 1), defaultCatalog)
}

/** A database as paths have it. */
export function databaseText({ catalog, database }: Omit<TableAddress, 'table'>, defaultCatalog: string): string {
  return catalog === defaultCatalog ? database : `${catalog}:${database}`
}

/** What a job on the table locks. */
export function lockKeyOf({ catalog, database, table }: TableAddress): string {
  return `table:${catalog}/${database}/${table}`
}

export function identifierOf({ database, table }: TableAddress): TableIdentifier {
  return { namespace: database.split('.'), name: table }
}

/** Undefined for a table whose names cannot be part of an address. */
export function addressOf(catalog: string, { namespace, name }: TableIdentifier): TableAddress | undefined {
  if (namespace.length === 0 || ![...namespace, name].every(isName)) return undefined
  return { catalog, database: namespace.join('.'), table: name }
}
