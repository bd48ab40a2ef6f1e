import type pg from 'pg'
import { IcebergError } from '../errors.ts'
import type { CreateTableOptions } from '../metadata/create-table-metadata.ts'
import type { TableMetadata } from '../metadata/table-metadata.ts'
import type { MetadataRequirement, MetadataUpdate } from '../metadata/update.ts'
import type { Storage } from '../storage/storage.ts'

/** The levels of a namespace, outermost first. */
export type Namespace = readonly string[]

export interface TableIdentifier {
  readonly namespace: Namespace
  readonly name: string
}

/** A table as a catalog had it at one moment. */
export interface LoadedTable {
  readonly identifier: TableIdentifier
  readonly metadata: TableMetadata
  /** The metadata file; a REST catalog may keep it to itself. */
  readonly metadataLocation: string | undefined
  /** Reaches the table's files, with the credentials its catalog gave for them. */
  readonly storage: Storage
  /** What a REST catalog says about this table, without credentials of prefixes. */
  readonly config: Readonly<Record<string, string>>
  /** Of a REST catalog's answer: what to ask with whether there is a newer one. */
  readonly etag?: string
}

/** A client of Postgres inside a transaction: for statements only, it ends elsewhere. */
export type TransactionClient = Pick<pg.ClientBase, 'query'>

/**
 * Runs work in a transaction of its own, such as an attempt's, and returns when that is committed. When the work throws,
 * it rolls back and throws too.
 */
export type InTransaction = <T>(work: (client: TransactionClient) => Promise<T>) => Promise<T>

/**
 * Looks once more whether a commit may be made, in its transaction where the catalog has one (`transaction` is then the
 * client it runs on), and immediately before it otherwise. To refuse it throws: nothing is changed then.
 */
export type Guard = (context: { transaction?: TransactionClient }) => Promise<void>

export interface CommitRequest {
  readonly requirements: readonly MetadataRequirement[]
  readonly updates: readonly MetadataUpdate[]
  readonly guard?: Guard
  /** A UUID that is the same whenever the same request is sent again, for catalogs that remember them. */
  readonly idempotencyKey?: string
  /**
   * JDBC only: a client with an open transaction of the caller, which the commit becomes a part of. It is applied when
   * the caller commits; when the caller rolls back, the new metadata file is left over.
   */
  readonly transaction?: TransactionClient
  /**
   * JDBC only: runs the guard and the swap in a transaction that the caller begins and ends, so that what is written or
   * checked there and the commit are one. It must be in the catalog's database. What becomes of it is found out under
   * the row's lock, and the new metadata file is removed when it was rolled back.
   */
  readonly inTransaction?: InTransaction
}

/** What became of a commit. Only `not_applied` says that its files are not needed. */
export type CommitResult =
  | { readonly outcome: 'applied'; readonly table: LoadedTable }
  | {
      readonly outcome: 'not_applied'
      /** `conflict` and `unavailable` may succeed when built again from the fresh table; the others will not. */
      readonly why: 'conflict' | 'unavailable' | 'refused' | 'rejected'
      readonly error: Error
      readonly retryAfterMs?: number
      /** The request never reached what it would change. Without it, an earlier copy of it may have been applied. */
      readonly neverSent?: boolean
      /** No copy of the request can be applied later. Without it, one may still be under way behind a gateway. */
      readonly final?: boolean
    }
  | { readonly outcome: 'unknown'; readonly error: Error }

export type NewTable = Omit<CreateTableOptions, 'location' | 'nowMs'> & {
  /** Default: where the catalog puts tables of this name. */
  readonly location?: string
}

export interface LoadOptions {
  /** Returned as it is when the catalog can tell that nothing has changed since. */
  readonly known?: LoadedTable
  /** Ends the requests of the load. A statement of Postgres that is under way is not ended by it. */
  readonly signal?: AbortSignal
}

/** Where tables are found by name, and where their current metadata is swapped. */
export interface Catalog {
  readonly name: string
  /** The namespaces directly in one, or at the top. */
  listNamespaces(parent?: Namespace): Promise<Namespace[]>
  createNamespace(namespace: Namespace, properties?: Readonly<Record<string, string>>): Promise<void>
  namespaceProperties(namespace: Namespace): Promise<Record<string, string>>
  /** Fails with namespace_not_empty while something is in it. */
  dropNamespace(namespace: Namespace): Promise<void>
  /** The tables directly in a namespace; views are left out. */
  listTables(namespace: Namespace): Promise<TableIdentifier[]>
  loadTable(identifier: TableIdentifier, options?: LoadOptions): Promise<LoadedTable>
  createTable(identifier: TableIdentifier, table: NewTable): Promise<LoadedTable>
  /**
   * Applies the updates to the table, if it is as required and, where the catalog is JDBC or files, still the very one
   * that was loaded. Throws only for wrong arguments; everything else is an outcome.
   */
  commit(table: LoadedTable, request: CommitRequest): Promise<CommitResult>
  /** Forgets a table. `purge` deletes its files too, where the catalog does that itself. */
  dropTable(identifier: TableIdentifier, options?: { purge?: boolean }): Promise<void>
  renameTable(from: TableIdentifier, to: TableIdentifier): Promise<void>
  /** Takes an existing metadata file as a new table. */
  registerTable(identifier: TableIdentifier, metadataLocation: string): Promise<LoadedTable>
}

/** For messages: "db.schema.table". */
export function tableName({ namespace, name }: TableIdentifier): string {
  return [...namespace, name].join('.')
}

export function tableNotFound(catalog: string, identifier: TableIdentifier, cause?: unknown): IcebergError {
  return new IcebergError('table_not_found', `The catalog ${catalog} has no table ${tableName(identifier)}.`, {
    details: { catalog, table: tableName(identifier) },
    cause,
  })
}

export function tableExists(catalog: string, identifier: TableIdentifier, cause?: unknown): IcebergError {
  return new IcebergError(
    'table_exists',
    `The catalog ${catalog} already has a table or view ${tableName(identifier)}; it was left as it is.`,
    { details: { catalog, table: tableName(identifier) }, cause },
  )
}

export function namespaceNotFound(catalog: string, namespace: Namespace, cause?: unknown): IcebergError {
  return new IcebergError('namespace_not_found', `The catalog ${catalog} has no namespace ${namespace.join('.')}.`, {
    details: { catalog, namespace: namespace.join('.') },
    cause,
  })
}

export function namespaceExists(catalog: string, namespace: Namespace, cause?: unknown): IcebergError {
  return new IcebergError(
    'namespace_exists',
    `The catalog ${catalog} already has a namespace ${namespace.join('.')}.`,
    {
      details: { catalog, namespace: namespace.join('.') },
      cause,
    },
  )
}

export function namespaceNotEmpty(catalog: string, namespace: Namespace, cause?: unknown): IcebergError {
  return new IcebergError(
    'namespace_not_empty',
    `The namespace ${namespace.join('.')} of the catalog ${catalog} is not empty: drop what is in it first.`,
    { details: { catalog, namespace: namespace.join('.') }, cause },
  )
}

export function conflict(
  identifier: TableIdentifier,
  why: string,
  cause?: unknown,
): Extract<CommitResult, { outcome: 'not_applied' }> {
  const error = new IcebergError('commit_conflict', `${tableName(identifier)} was not changed: ${why}.`, {
    details: { table: tableName(identifier) },
    cause,
  })
  return { outcome: 'not_applied', why: 'conflict', error }
}

/** Refuses a request that only a catalog in Postgres can carry out. */
export function assertNoTransaction(kind: string, { transaction, inTransaction }: CommitRequest): void {
  if (transaction === undefined && inTransaction === undefined) return
  throw new IcebergError(
    'catalog_unsupported',
    `A ${kind} catalog cannot take part in a transaction of Postgres. Give a guard: it is asked immediately before.`,
  )
}

/** The guard's own verdict: undefined to go on. */
export async function askGuard(
  identifier: TableIdentifier,
  guard: Guard | undefined,
  transaction?: TransactionClient,
): Promise<CommitResult | undefined> {
  try {
    await guard?.(transaction === undefined ? {} : { transaction })
    return undefined
  } catch (cause) {
    const message = `The guard refused a commit to ${tableName(identifier)}: ${(cause as Error).message}`
    const error = new IcebergError('commit_refused', message, { details: { table: tableName(identifier) }, cause })
    return { outcome: 'not_applied', why: 'refused', error }
  }
}
