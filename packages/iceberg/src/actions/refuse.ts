import { tableName, type LoadedTable } from '../catalogs/catalog.ts'
import { IcebergError } from '../errors.ts'
import { propertyOf, tableProperties } from '../properties.ts'

/** Why an action will not touch a table. */
export const refusals = [
  'gc_disabled',
  'older_than_too_recent',
  'location_outside',
  'location_root',
  'location_shared',
  'prefix_mismatch',
  'too_many_orphans',
  'plan_too_old',
  'other_table',
  'snapshot_held',
  'options_invalid',
] as const
export type Refusal = (typeof refusals)[number]

/** Nothing was changed: says what is wrong, and what to do. */
export function refused(
  action: string,
  { identifier }: Pick<LoadedTable, 'identifier'>,
  reason: Refusal,
  message: string,
  details: Record<string, unknown> = {},
): IcebergError {
  const table = tableName(identifier)
  return new IcebergError('action_refused', `${action} of ${table} was refused: ${message}`, {
    details: { ...details, table, reason },
  })
}

/** A table that may share its files with others says so by `gc.enabled`. */
export function assertGarbageCollected(action: string, table: LoadedTable): void {
  if (propertyOf(table.metadata, tableProperties.gcEnabled)) return
  throw refused(
    action,
    table,
    'gc_disabled',
    'its property gc.enabled is not true, so its files may belong to other tables too. Set it to true if they do not.',
  )
}
