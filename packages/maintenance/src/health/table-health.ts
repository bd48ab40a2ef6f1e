import type { Catalog, LoadedTable } from '@fencepost/iceberg'
import { gatherHealthFacts, type GatherOptions } from './gather-health-facts.ts'
import { health, type TableHealth } from './health.ts'
import { effectiveSettings, type HealthSettings } from './health-settings.ts'

/** Reads a table and tells its health: the facts, with the table's own settings over the given ones. */
export async function tableHealth(
  catalog: Catalog,
  table: LoadedTable,
  { settings: given = {}, ...options }: GatherOptions & { readonly settings?: Partial<HealthSettings> } = {},
): Promise<TableHealth> {
  const settings = effectiveSettings(table.metadata.properties, given)
  const facts = await gatherHealthFacts(catalog, table, settings.values, options)
  return health(facts, settings, options.costs)
}
