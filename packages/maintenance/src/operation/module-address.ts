import { extname } from 'node:path'
import type { CatalogsConfig } from '../catalogs/catalogs-file.ts'
import type { TableMaintenanceOptions } from './table-maintenance.ts'

/** What the process of an isolated handler needs to know. */
export interface ModuleSettings extends TableMaintenanceOptions {
  /** The path of the file that describes the catalogs, or what it would say. */
  readonly catalogs: string | CatalogsConfig
  /** Where the jobs are, for catalogs in the same database. */
  readonly database?: string | undefined
  /** A module with further operations. */
  readonly more?: string | undefined
}

const parameter = 'settings'

/** The address of a module that exports table_maintenance, and the operations of another module. */
export function moduleAddress(settings: ModuleSettings): URL {
  const address = new URL(`./handler-module${extname(import.meta.url.split('?')[0] ?? '')}`, import.meta.url)
  address.searchParams.set(parameter, JSON.stringify(settings))
  return address
}

export function moduleSettings(address: string): ModuleSettings {
  return JSON.parse(new URL(address).searchParams.get(parameter) ?? '{}') as ModuleSettings
}
