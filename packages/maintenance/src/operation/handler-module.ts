import type { Operation } from '@fencepost/engine'
import { Catalogs } from '../catalogs/catalogs.ts'
import { readCatalogsFile } from '../catalogs/catalogs-file.ts'
import { moduleSettings } from './module-address.ts'
import { tableMaintenance } from './table-maintenance.ts'

// What the processes of isolated handlers import. Its address says which catalogs there are; see module-address.ts.

const { catalogs, database, more, ...options } = moduleSettings(import.meta.url)
const others = more === undefined ? [] : ((await import(more)) as { operations: readonly Operation[] }).operations

const config = typeof catalogs === 'string' ? await readCatalogsFile(catalogs) : catalogs

export const operations: readonly Operation[] = [tableMaintenance(new Catalogs(config, database), options), ...others]
