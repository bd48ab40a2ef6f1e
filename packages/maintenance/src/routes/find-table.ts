import type { Engine } from '@fencepost/engine'
import { IcebergError, type Catalog, type IcebergErrorCode, type LoadedTable } from '@fencepost/iceberg'
import { ApiError } from '@fencepost/server'
import { parseAddress, type TableAddress } from '../catalogs/address.ts'
import type { Catalogs } from '../catalogs/catalogs.ts'
import { isListed } from '../inventory/inventory.ts'

/** The table of a path: 422 for a name that cannot be, 404 for one that the inventory does not have. */
export async function findTable(
  engine: Engine,
  catalogs: Catalogs,
  path: { database: string; table: string },
): Promise<TableAddress> {
  const address = parseAddress(path.database, path.table, catalogs.defaultName)
  if (address === undefined) {
    throw new ApiError(
      'table_name_invalid',
      'The database or table has a name that cannot be addressed. A database is written as namespace levels with dots ' +
        'between them, after catalog: in another catalog than the default one.',
    )
  }
  if (!catalogs.names.includes(address.catalog) || !(await isListed(engine.database, address))) throw notFound(path)
  return address
}

const gone: ReadonlySet<IcebergErrorCode> = new Set(['table_not_found', 'namespace_not_found'])
const away: ReadonlySet<IcebergErrorCode> = new Set([
  'catalog_unavailable',
  'catalog_unauthorized',
  'catalog_denied',
  'catalog_invalid',
  'storage_failed',
  'storage_denied',
  'storage_not_found',
])

/** Does something to a table as its catalog has it now; what its catalog or storage says becomes an answer. */
export async function onTable<T>(
  catalogs: Catalogs,
  address: TableAddress,
  work: (table: LoadedTable, catalog: Catalog) => Promise<T>,
): Promise<T> {
  try {
    const { catalog } = await catalogs.open(address.catalog)
    return await work(await catalogs.load(address), catalog)
  } catch (error) {
    if (!(error instanceof IcebergError)) throw error
    if (gone.has(error.code)) throw notFound({ database: address.database, table: address.table })
    if (error.code === 'action_refused') throw new ApiError('request_invalid', error.message, { cause: error })
    if (!away.has(error.code)) throw error
    const message = `The catalog ${address.catalog} or its storage does not answer as it should: ${error.code}.`
    throw new ApiError('catalog_unavailable', message, { details: { code: error.code }, cause: error })
  }
}

function notFound({ database, table }: { database: string; table: string }): ApiError {
  const name = JSON.stringify(`${database}.${table}`.slice(0, 200))
  return new ApiError('table_not_found', `The inventory has no table ${name}. POST /catalogs/refresh lists them again.`)
}
