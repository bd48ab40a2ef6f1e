export {
  tableName,
  type Catalog,
  type CommitRequest,
  type CommitResult,
  type Guard,
  type InTransaction,
  type LoadedTable,
  type Namespace,
  type NewTable,
  type TableIdentifier,
  type TransactionClient,
} from './catalog.ts'
export { HadoopCatalog, type HadoopCatalogOptions } from './hadoop-catalog.ts'
export { JdbcCatalog, type JdbcCatalogOptions } from './jdbc-catalog.ts'
export type { JdbcLayout } from './jdbc-tables.ts'
export type { RestAuth } from './rest-auth.ts'
export { RestCatalog, type RestCatalogOptions } from './rest-catalog.ts'
