export * from './demo/index.ts'
export * from './health/index.ts'
export * from './sample-lake/index.ts'
export { maintenance, type MaintenanceOptions } from './application.ts'
export { databaseText, parseAddress, type TableAddress } from './catalogs/address.ts'
export { Catalogs, type OpenedCatalog } from './catalogs/catalogs.ts'
export {
  CatalogsConfigError,
  checkCatalogs,
  readCatalogsFile,
  type CatalogConfig,
  type CatalogsConfig,
} from './catalogs/catalogs-file.ts'
export { refreshInventory, type Refreshed } from './inventory/refresh.ts'
export { actionNames, type ActionName } from './operation/action-options.ts'
export { moduleAddress, type ModuleSettings } from './operation/module-address.ts'
export { tableMaintenance, type TableMaintenanceOptions } from './operation/table-maintenance.ts'
export { maintenanceMigrations } from './relations.ts'
