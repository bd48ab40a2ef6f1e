import {
  applyUpdates,
  checkRequirements,
  createTableMetadata,
  IcebergError,
  type Catalog,
  type CommitRequest,
  type CommitResult,
  type LoadedTable,
  type MetadataUpdate,
  type NewTable,
  type Storage,
  type TableIdentifier,
  type TableMetadata,
} from '@fencepost/iceberg'

/**
 * A catalog of one table in memory, whose time is set by hand: what is committed is dated then. So a table can be given
 * a past of weeks in seconds, by the same writers as any other table. Its files are real; its metadata is written once,
 * at the end, by whoever publishes the table.
 */
export class HistoryCatalog implements Catalog {
  readonly name = 'history'
  /** The present time of the table. It must not go back. */
  nowMs: number
  readonly #location: string
  readonly #storage: Storage
  #table: LoadedTable | undefined

  constructor(location: string, storage: Storage, nowMs: number) {
    this.#location = location
    this.#storage = storage
    this.nowMs = nowMs
  }

  async createTable(identifier: TableIdentifier, table: NewTable): Promise<LoadedTable> {
    const metadata = createTableMetadata({ ...table, location: this.#location, nowMs: this.nowMs })
    return this.#keep(identifier, metadata)
  }

  async loadTable(identifier: TableIdentifier): Promise<LoadedTable> {
    if (this.#table === undefined) throw unsupported(`has no table ${identifier.name} yet`)
    return this.#table
  }

  async commit(table: LoadedTable, request: CommitRequest): Promise<CommitResult> {
    checkRequirements(table.metadata, request.requirements)
    const updates = request.updates.map((update) => this.#dated(update))
    const metadata = applyUpdates(table.metadata, updates, { nowMs: this.nowMs })
    return { outcome: 'applied', table: this.#keep(table.identifier, metadata) }
  }

  #dated(update: MetadataUpdate): MetadataUpdate {
    if (update.action !== 'add-snapshot') return update
    return { ...update, snapshot: { ...update.snapshot, timestampMs: this.nowMs } }
  }

  #keep(identifier: TableIdentifier, metadata: TableMetadata): LoadedTable {
    this.#table = { identifier, metadata, metadataLocation: undefined, storage: this.#storage, config: {} }
    return this.#table
  }

  listNamespaces(): never {
    throw unsupported('has no namespaces')
  }
  createNamespace(): never {
    throw unsupported('has no namespaces')
  }
  namespaceProperties(): never {
    throw unsupported('has no namespaces')
  }
  dropNamespace(): never {
    throw unsupported('has no namespaces')
  }
  listTables(): never {
    throw unsupported('has one table')
  }
  dropTable(): never {
    throw unsupported('has one table')
  }
  renameTable(): never {
    throw unsupported('has one table')
  }
  registerTable(): never {
    throw unsupported('has one table')
  }
}

function unsupported(what: string): IcebergError {
  return new IcebergError('catalog_unsupported', `A catalog of one table's history ${what}.`)
}
