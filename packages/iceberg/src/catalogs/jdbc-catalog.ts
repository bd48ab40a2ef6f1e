import pg from 'pg'
import { IcebergError } from '../errors.ts'
import { createTableMetadata } from '../metadata/create-table-metadata.ts'
import { encodeTableMetadata, readTableMetadata } from '../metadata/metadata-file.ts'
import type { TableMetadata } from '../metadata/table-metadata.ts'
import { RoutedStorage } from '../storage/storage-for.ts'
import type { Storage } from '../storage/storage.ts'
import {
  tableExists,
  tableName,
  tableNotFound,
  type Catalog,
  type CommitRequest,
  type CommitResult,
  type LoadedTable,
  type LoadOptions,
  type Namespace,
  type NewTable,
  type TableIdentifier,
} from './catalog.ts'
import { swapAlone, swapIn, swapInside, type Swap, type Swapped } from './jdbc-commit.ts'
import { JdbcNamespaces } from './jdbc-namespaces.ts'
import { checkedName, createRelations, defaultLocation, layoutOf, query, type JdbcLayout } from './jdbc-tables.ts'
import { deleteDropped, isResult, nextMetadata, nextMetadataLocation } from './next-metadata.ts'

export interface JdbcCatalogOptions {
  /** The value of `catalog_name`: what the catalog is called in Spark or PyIceberg. */
  name: string
  /** A connection string, or a pool of the caller's, which the caller ends. Its search path decides the schema. */
  database: string | pg.Pool
  /** Where new tables go: `<warehouse>/<namespace>/<table>`. */
  warehouse: string
  /** Default: by the scheme of each location, with `properties`. */
  storage?: Storage
  /** Iceberg's properties of the storage: `s3.endpoint` and so on. */
  properties?: Readonly<Record<string, string>>
  /** Makes the relations when there are none, in this layout. Default V1. A database that has them keeps its layout. */
  createLayout?: JdbcLayout | 'never'
}

/** Tables by name in a Postgres database, as Iceberg's JdbcCatalog and PyIceberg's SqlCatalog keep them. */
export class JdbcCatalog implements Catalog {
  readonly name: string
  readonly layout: JdbcLayout
  readonly #pool: pg.Pool
  readonly #ownsPool: boolean
  readonly #storage: Storage
  readonly #warehouse: string
  readonly #namespaces: JdbcNamespaces

  private constructor(options: JdbcCatalogOptions, pool: pg.Pool, layout: JdbcLayout) {
    this.name = options.name
    this.layout = layout
    this.#pool = pool
    this.#ownsPool = typeof options.database === 'string'
    this.#storage = options.storage ?? new RoutedStorage(options.properties)
    this.#warehouse = options.warehouse
    this.#namespaces = new JdbcNamespaces(options.name, pool)
  }

  static async open(options: JdbcCatalogOptions): Promise<JdbcCatalog> {
    const { database, createLayout = 'V1' } = options
    const pool = typeof database === 'string' ? new pg.Pool({ connectionString: database }) : database
    if (typeof database === 'string') pool.on('error', () => {}) // an idle connection broke; the next one is new
    try {
      const found = await layoutOf(pool)
      if (!found.complete && createLayout !== 'never') await createRelations(pool, found.layout ?? createLayout)
      const { layout, complete } = found.complete ? found : await layoutOf(pool)
      if (layout === undefined || !complete) {
        throw new IcebergError(
          'catalog_invalid',
          `The database of the catalog ${options.name} lacks iceberg_tables or iceberg_namespace_properties: ` +
            'create them, or give a createLayout.',
        )
      }
      return new JdbcCatalog(options, pool, layout)
    } catch (error) {
      if (typeof database === 'string') await pool.end()
      throw error
    }
  }

  async close(): Promise<void> {
    if (this.#ownsPool) await this.#pool.end()
  }

  listNamespaces(parent: Namespace = []): Promise<Namespace[]> {
    return this.#namespaces.list(parent)
  }

  createNamespace(namespace: Namespace, properties: Readonly<Record<string, string>> = {}): Promise<void> {
    return this.#namespaces.create(namespace, properties)
  }

  namespaceProperties(namespace: Namespace): Promise<Record<string, string>> {
    return this.#namespaces.properties(namespace)
  }

  dropNamespace(namespace: Namespace): Promise<void> {
    return this.#namespaces.drop(namespace)
  }

  async listTables(namespace: Namespace): Promise<TableIdentifier[]> {
    await this.#namespaces.assertExists(namespace)
    const { rows } = await query<{ table_name: string }>(
      this.#pool,
      `select table_name from iceberg_tables
        where catalog_name = $1 and table_namespace = $2 ${this.#onlyTables()} order by table_name`,
      [this.name, namespace.join('.')],
    )
    return rows.map((row) => ({ namespace, name: row.table_name }))
  }

  async loadTable(identifier: TableIdentifier, { known, signal }: LoadOptions = {}): Promise<LoadedTable> {
    signal?.throwIfAborted()
    const { namespace, name } = checkedName(identifier)
    const { rows } = await query<{ metadata_location: string | null }>(
      this.#pool,
      `select metadata_location from iceberg_tables
        where catalog_name = $1 and table_namespace = $2 and table_name = $3 ${this.#onlyTables()}`,
      [this.name, namespace, name],
    )
    if (rows[0] === undefined) throw tableNotFound(this.name, identifier)
    const location = rows[0].metadata_location
    if (location === null) {
      throw new IcebergError('catalog_invalid', `${tableName(identifier)} has no metadata_location in its row.`)
    }
    if (known !== undefined && known.metadataLocation === location) return known
    const metadata = await readTableMetadata(await this.#storage.read(location, undefined, { signal }), location)
    return this.#loaded(identifier, metadata, location)
  }

  async createTable(identifier: TableIdentifier, table: NewTable): Promise<LoadedTable> {
    const { namespace, name } = checkedName(identifier)
    await this.#namespaces.assertExists(identifier.namespace)
    const location = table.location ?? defaultLocation(this.#warehouse, identifier)
    const metadata = createTableMetadata({ ...table, location, nowMs: Date.now() })
    const metadataLocation = nextMetadataLocation(metadata, undefined)
    await this.#storage.write(metadataLocation, await encodeTableMetadata(metadata, metadataLocation))
    try {
      await this.#insert(identifier, namespace, name, metadataLocation)
    } catch (error) {
      // Only a taken name says for certain that no row refers to the file.
      const taken = error instanceof IcebergError && error.code === 'table_exists'
      if (taken) await this.#storage.delete([metadataLocation]).catch(() => {})
      throw error
    }
    return this.#loaded(identifier, metadata, metadataLocation)
  }

  async commit(table: LoadedTable, request: CommitRequest): Promise<CommitResult> {
    const { identifier, metadata, metadataLocation } = table
    const { namespace, name } = checkedName(identifier)
    const next = await nextMetadata(table, request)
    if (isResult(next)) return next
    if (next === metadata) return { outcome: 'applied', table }
    if (metadataLocation === undefined) {
      throw new IcebergError('catalog_invalid', `${tableName(identifier)} was not loaded from a JDBC catalog.`)
    }
    const to = nextMetadataLocation(next, metadataLocation)
    const failed = await this.#writeMetadata(to, next)
    if (failed !== undefined) return failed
    const row = [this.name, namespace, name] as const
    const swap: Swap = { identifier, row, layout: this.layout, from: metadataLocation, to }
    const { transaction } = request
    const result = await this.#swap(swap, request)
    if (result.outcome === 'not_applied') {
      await this.#storage.delete([to]).catch(() => {})
      return { ...result, final: true }
    }
    if (result.outcome !== 'swapped') return result
    // In the caller's transaction it may still be taken back.
    if (transaction === undefined) await deleteDropped(this.#storage, metadata, next)
    return { outcome: 'applied', table: this.#loaded(identifier, next, to) }
  }

  #swap(swap: Swap, { transaction, inTransaction, guard }: CommitRequest): Promise<Swapped> {
    if (transaction !== undefined) return swapInside(transaction, swap, guard)
    if (inTransaction !== undefined) return swapIn(inTransaction, this.#pool, this.#storage, swap, guard)
    return swapAlone(this.#pool, this.#storage, swap, guard)
  }

  async dropTable(identifier: TableIdentifier, { purge = false }: { purge?: boolean } = {}): Promise<void> {
    const { namespace, name } = checkedName(identifier)
    if (purge) {
      throw new IcebergError(
        'catalog_unsupported',
        `A JDBC catalog only forgets tables. Drop ${tableName(identifier)} without purge; its files stay.`,
      )
    }
    const { rowCount } = await query(
      this.#pool,
      `delete from iceberg_tables
        where catalog_name = $1 and table_namespace = $2 and table_name = $3 ${this.#onlyTables()}`,
      [this.name, namespace, name],
    )
    if (rowCount === 0) throw tableNotFound(this.name, identifier)
  }

  async renameTable(from: TableIdentifier, to: TableIdentifier): Promise<void> {
    const [source, target] = [checkedName(from), checkedName(to)]
    await this.#namespaces.assertExists(to.namespace)
    try {
      const { rowCount } = await query(
        this.#pool,
        `update iceberg_tables set table_namespace = $4, table_name = $5
          where catalog_name = $1 and table_namespace = $2 and table_name = $3 ${this.#onlyTables()}`,
        [this.name, source.namespace, source.name, target.namespace, target.name],
      )
      if (rowCount === 0) throw tableNotFound(this.name, from)
    } catch (error) {
      throw isTaken(error) ? tableExists(this.name, to, error) : error
    }
  }

  async registerTable(identifier: TableIdentifier, metadataLocation: string): Promise<LoadedTable> {
    const { namespace, name } = checkedName(identifier)
    await this.#namespaces.assertExists(identifier.namespace)
    const metadata = await readTableMetadata(await this.#storage.read(metadataLocation), metadataLocation)
    await this.#insert(identifier, namespace, name, metadataLocation)
    return this.#loaded(identifier, metadata, metadataLocation)
  }

  async #insert(identifier: TableIdentifier, namespace: string, name: string, location: string): Promise<void> {
    const [column, value] = this.layout === 'V1' ? [', iceberg_type', `, 'TABLE'`] : ['', '']
    try {
      await query(
        this.#pool,
        `insert into iceberg_tables
           (catalog_name, table_namespace, table_name, metadata_location, previous_metadata_location${column})
         values ($1, $2, $3, $4, null${value})`,
        [this.name, namespace, name, location],
      )
    } catch (error) {
      throw isTaken(error) ? tableExists(this.name, identifier, error) : error
    }
  }

  /** Nothing refers to the file yet, so whatever happens to it the table is not changed. */
  async #writeMetadata(location: string, metadata: TableMetadata): Promise<CommitResult | undefined> {
    try {
      await this.#storage.write(location, await encodeTableMetadata(metadata, location))
      return undefined
    } catch (error) {
      await this.#storage.delete([location]).catch(() => {})
      const why = error instanceof IcebergError && error.code === 'storage_failed' ? 'unavailable' : 'rejected'
      return { outcome: 'not_applied', why, error: error as Error, neverSent: true }
    }
  }

  #loaded(identifier: TableIdentifier, metadata: TableMetadata, metadataLocation: string): LoadedTable {
    return { identifier, metadata, metadataLocation, storage: this.#storage, config: {} }
  }

  #onlyTables(): string {
    return this.layout === 'V1' ? `and (iceberg_type = 'TABLE' or iceberg_type is null)` : ''
  }
}

function isTaken(error: unknown): boolean {
  return (error as { code?: string }).code === '23505'
}
