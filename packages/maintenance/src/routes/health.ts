import { tableRoutes } from '@fencepost/client'
import type { Engine } from '@fencepost/engine'
import { endpoint, type Endpoint } from '@fencepost/server'
import { databaseText, type TableAddress } from '../catalogs/address.ts'
import type { Catalogs } from '../catalogs/catalogs.ts'
import { healthToJson, tableHealth } from '../health/index.ts'
import { getHealth, keepHealth, type KeptHealth } from '../inventory/kept-health.ts'
import { findTable, onTable } from './find-table.ts'

/** The health of a table: as it is now, and as it was when it was last looked at. */
export function healthEndpoints(engine: Engine, catalogs: Catalogs): readonly Endpoint[] {
  const look = async (address: TableAddress): Promise<KeptHealth> => {
    const found = await onTable(catalogs, address, (table, catalog) => tableHealth(catalog, table))
    return keepHealth(engine.database, address, healthToJson(found))
  }
  const answer = (address: TableAddress, { lookedAt, health }: KeptHealth) => ({
    body: {
      catalog: address.catalog,
      database: databaseText(address, catalogs.defaultName),
      table_name: address.table,
      looked_at: lookedAt,
      ...health,
    },
  })
  return [
    endpoint(tableRoutes.tableHealth, async ({ params }) => {
      const address = await findTable(engine, catalogs, params)
      return answer(address, await look(address))
    }),
    endpoint(tableRoutes.cachedTableHealth, async ({ params }) => {
      const address = await findTable(engine, catalogs, params)
      return answer(address, (await getHealth(engine.database, address)) ?? (await look(address)))
    }),
  ]
}
