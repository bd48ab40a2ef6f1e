import { dirname, join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { EngineOptions, Logger, Operation } from '@fencepost/engine'
import {
  Catalogs,
  CatalogsConfigError,
  maintenance,
  moduleAddress,
  readCatalogsFile,
  tableMaintenance,
  type CatalogsConfig,
} from '@fencepost/maintenance'
import type { Application } from '@fencepost/server'
import { UsageError } from '../failure.ts'
import type { LoadedOperations } from './load-operations.ts'

/** The maintenance of tables as a process runs it. */
export interface Maintenance {
  readonly catalogs: Catalogs
  readonly application: Application
  /** With table_maintenance beside the operations of the user. */
  readonly engineOptions: Pick<EngineOptions, 'operations' | 'operationsModule'>
}

/** The name of the sample lake's catalog. */
export const sampleCatalog = 'lake'

/** The catalog of the sample lake: in the embedded Postgres, with its files beside that. */
export function sampleLakeConfig(directory: string): { config: CatalogsConfig; folder: string } {
  const folder = join(dirname(resolve(directory)), 'lake')
  const warehouse = pathToFileURL(folder).href
  return {
    folder,
    config: { default: sampleCatalog, catalogs: { [sampleCatalog]: { type: 'jdbc', warehouse, properties: {} } } },
  }
}

/** Sets up the maintenance of the tables of these catalogs: of a file, or as they are. */
export async function openMaintenance(
  given: string | CatalogsConfig,
  loaded: Partial<LoadedOperations>,
  { database, logger }: { database: string; logger: Logger },
): Promise<Maintenance> {
  const path = typeof given === 'string' ? resolve(given) : given
  const catalogs = new Catalogs(typeof path === 'string' ? await readCatalogs(path) : path, database)
  const others: readonly Operation[] = loaded.operations ?? []
  const more = loaded.operationsModule?.href ?? (others.length > 0 ? samplesModule : undefined)
  return {
    catalogs,
    application: maintenance(catalogs, { logger }),
    engineOptions: {
      operations: [tableMaintenance(catalogs), ...others],
      operationsModule: moduleAddress({ catalogs: path, database, more }),
    },
  }
}

/** A file of catalogs, or an error that names what is wrong with it. */
export async function readCatalogs(path: string): Promise<CatalogsConfig> {
  try {
    return await readCatalogsFile(path)
  } catch (error) {
    if (error instanceof CatalogsConfigError) throw new UsageError(error.message, { cause: error })
    throw error
  }
}

const samplesModule = new URL('../samples/operations.js', import.meta.url).href
