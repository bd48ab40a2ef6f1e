import { UsageError } from '../failure.ts'

/** The parameters of a table's path: of `database.table`, or `catalog:database.table`. */
export function pathOf(text: string, command: string): { database: string; table: string } {
  const dot = text.lastIndexOf('.')
  if (dot > 0 && dot < text.length - 1) return { database: text.slice(0, dot), table: text.slice(dot + 1) }
  throw new UsageError(`${JSON.stringify(text)} is no table; give database.table, or catalog:database.table.`, {
    command,
  })
}
