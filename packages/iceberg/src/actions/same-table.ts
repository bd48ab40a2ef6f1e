import { tableName, type LoadedTable } from '../catalogs/catalog.ts'
import { IcebergError } from '../errors.ts'
import type { PlannedTable } from './action.ts'

/** Refuses a plan that was made for another table. */
export function assertPlannedFor({ identifier, metadata }: LoadedTable, planned: PlannedTable): void {
  if ((metadata.tableUuid ?? '') === planned.uuid) return
  throw new IcebergError(
    'requirement_failed',
    `${tableName(identifier)} is not the table that the plan was made for: it was dropped, and made anew. Plan again.`,
    { details: { expected: planned.uuid, found: metadata.tableUuid } },
  )
}
