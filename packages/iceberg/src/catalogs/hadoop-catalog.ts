import { IcebergError } from '../errors.ts'
import { createTableMetadata } from '../metadata/create-table-metadata.ts'
import { encodeTableMetadata, readTableMetadata } from '../metadata/metadata-file.ts'
import type { TableMetadata } from '../metadata/table-metadata.ts'
import { propertyOf, tableProperties } from '../properties.ts'
import { below, locationKey, parseLocation } from '../storage/location.ts'
import { RoutedStorage } from '../storage/storage-for.ts'
import type { FolderStorage } from '../storage/storage.ts'
import {
  askGuard,
  assertNoTransaction,
  conflict,
  namespaceExists,
  namespaceNotEmpty,
  namespaceNotFound,
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
import { currentVersion, metadataFolder, versionAt, versionIn, writeHint, type Version } from './hadoop-versions.ts'
import { deleteDropped, isResult, nextMetadata } from './next-metadata.ts'

// A commit creates the file of the next version, and the storage lets one writer only create it. Nothing is ever
// overwritten, so a commit that finds the file there has lost, and one that does not know finds its own bytes there.
//
// Limit: this protects against writers that create exclusively too. Java's own renames, which is as good on a local
// disk and on HDFS; on S3 it is not, so writing there has to be asked for.
// Limit: a table that others drop and create again under the same name is not told from the old one by who still holds
// that, if both have the same number of versions.

export interface HadoopCatalogOptions {
  name: string
  /** The folder that namespaces and tables are folders in. */
  warehouse: string
  /** Default: by the scheme of the warehouse, with `properties`. */
  storage?: FolderStorage
  properties?: Readonly<Record<string, string>>
  /** Lets this catalog write to S3, where every other writer must create with `If-None-Match` as well. Default false. */
  writeToObjectStore?: boolean
}

/** Tables that are folders of a file system: found by their path, their versions counted. */
export class HadoopCatalog implements Catalog {
  readonly name: string
  readonly #warehouse: string
  readonly #storage: FolderStorage
  readonly #readOnly: boolean

  constructor(options: HadoopCatalogOptions) {
    this.name = options.name
    this.#warehouse = options.warehouse
    this.#storage = options.storage ?? new RoutedStorage(options.properties)
    const local = parseLocation(options.warehouse).scheme === 'file'
    this.#readOnly = !local && options.writeToObjectStore !== true
  }

  async listNamespaces(parent: Namespace = []): Promise<Namespace[]> {
    if (parent.length > 0) await this.#assertNamespace(parent)
    return (await this.#childrenOf(parent)).filter((child) => !child.isTable).map(({ name }) => [...parent, name])
  }

  async createNamespace(namespace: Namespace, properties: Readonly<Record<string, string>> = {}): Promise<void> {
    this.#assertWritable()
    if (Object.keys(properties).length > 0) throw this.#unsupported('keeps no properties of namespaces')
    const folder = this.#folderOf(namespace)
    if (await this.#storage.folderExists(folder)) throw namespaceExists(this.name, namespace)
    await this.#storage.makeFolder(folder)
  }

  async namespaceProperties(namespace: Namespace): Promise<Record<string, string>> {
    await this.#assertNamespace(namespace)
    return { location: this.#folderOf(namespace) }
  }

  async dropNamespace(namespace: Namespace): Promise<void> {
    this.#assertWritable()
    await this.#assertNamespace(namespace)
    const folder = this.#folderOf(namespace)
    if ((await this.#storage.folders(folder)).length > 0) throw namespaceNotEmpty(this.name, namespace)
    try {
      await this.#storage.removeFolder(folder)
    } catch (error) {
      throw namespaceNotEmpty(this.name, namespace, error)
    }
  }

  async listTables(namespace: Namespace): Promise<TableIdentifier[]> {
    await this.#assertNamespace(namespace)
    return (await this.#childrenOf(namespace)).filter((child) => child.isTable).map(({ name }) => ({ namespace, name }))
  }

  async loadTable(identifier: TableIdentifier, { known, signal }: LoadOptions = {}): Promise<LoadedTable> {
    signal?.throwIfAborted()
    const version = await currentVersion(this.#storage, this.#tableFolder(identifier))
    if (version === undefined) throw tableNotFound(this.name, identifier)
    if (known !== undefined && known.metadataLocation === version.location) return known
    const metadata = await readTableMetadata(await this.#storage.read(version.location), version.location)
    return this.#loaded(identifier, metadata, version.location)
  }

  async createTable(identifier: TableIdentifier, table: NewTable): Promise<LoadedTable> {
    this.#assertWritable()
    const folder = this.#tableFolder(identifier)
    await this.#assertNamespace(identifier.namespace)
    if (table.location !== undefined && locationKey(table.location) !== locationKey(folder)) {
      throw this.#unsupported(`finds tables by their path: ${tableName(identifier)} must be at ${folder}`)
    }
    if (await currentVersion(this.#storage, folder)) throw tableExists(this.name, identifier)
    const metadata = createTableMetadata({ ...table, location: folder, nowMs: Date.now() })
    const problem = propertyProblem(metadata, undefined)
    if (problem !== undefined) throw this.#unsupported(problem)
    const location = below(metadataFolder(folder), 'v1.metadata.json')
    try {
      await this.#storage.write(location, await encodeTableMetadata(metadata, location), { exclusive: true })
    } catch (error) {
      const taken = error instanceof IcebergError && error.code === 'storage_exists'
      throw taken ? tableExists(this.name, identifier, error) : error
    }
    await writeHint(this.#storage, folder, 1)
    return this.#loaded(identifier, metadata, location)
  }

  async commit(table: LoadedTable, request: CommitRequest): Promise<CommitResult> {
    this.#assertWritable()
    assertNoTransaction('file system', request)
    const { identifier, metadata, metadataLocation = '' } = table
    const next = await nextMetadata(table, request)
    if (isResult(next)) return next
    if (next === metadata) return { outcome: 'applied', table }
    const problem = propertyProblem(next, metadata)
    if (problem !== undefined) {
      return { outcome: 'not_applied', why: 'rejected', error: this.#unsupported(problem), neverSent: true }
    }
    const result = await this.#create(identifier, versionAt(metadataLocation), next, request)
    if (result.outcome !== 'applied') return result
    const folder = this.#tableFolder(identifier)
    await writeHint(this.#storage, folder, versionAt(result.table.metadataLocation ?? '').number)
    await deleteDropped(this.#storage, metadata, next)
    return result
  }

  async #create(
    identifier: TableIdentifier,
    base: Version,
    next: TableMetadata,
    request: CommitRequest,
  ): Promise<CommitResult> {
    // The ending never changes: two endings of one number would be two current versions.
    const location = below(metadataFolder(this.#tableFolder(identifier)), `v${base.number + 1}${base.extension}`)
    const content = await encodeTableMetadata(next, location)
    const current = await this.#stillCurrent(identifier, base)
    if (current !== undefined) return current
    const refused = await askGuard(identifier, request.guard)
    if (refused !== undefined) return refused
    try {
      await this.#storage.write(location, content, { exclusive: true })
    } catch (error) {
      const result = await this.#lookAgain(identifier, location, content, error as Error)
      if (result !== undefined) return result
    }
    return (await this.#overtaken(identifier, location)) ?? this.#applied(identifier, next, location)
  }

  #applied(identifier: TableIdentifier, metadata: TableMetadata, location: string): CommitResult {
    return { outcome: 'applied', table: this.#loaded(identifier, metadata, location) }
  }

  /** Whether what was created is not part of the table: see above, and it can also happen after that look. */
  async #overtaken(identifier: TableIdentifier, location: string): Promise<CommitResult | undefined> {
    const error = new IcebergError(
      'commit_unknown',
      `${location} was created, but ${tableName(identifier)} may already have had a later version.`,
      { details: { table: tableName(identifier), metadataLocation: location } },
    )
    try {
      const current = await currentVersion(this.#storage, this.#tableFolder(identifier))
      if (current === undefined || current.number <= versionAt(location).number) return undefined
      const { metadataLog } = await readTableMetadata(await this.#storage.read(current.location), current.location)
      return metadataLog.some((entry) => entry.metadataFile === location) ? undefined : { outcome: 'unknown', error }
    } catch {
      return undefined // it was the current version a moment ago, and is there
    }
  }

  // With delete-after-commit old files go away, and the name after an old version may be free again.
  async #stillCurrent(identifier: TableIdentifier, base: Version): Promise<CommitResult | undefined> {
    try {
      const current = await currentVersion(this.#storage, this.#tableFolder(identifier))
      if (current?.number === base.number) return undefined
      const why = current === undefined ? 'it was dropped' : 'another commit came first'
      return { ...conflict(identifier, why), final: true }
    } catch (error) {
      return { outcome: 'not_applied', why: 'unavailable', error: error as Error, neverSent: true }
    }
  }

  /** What a failed write came to; undefined when our version is there after all. */
  async #lookAgain(
    identifier: TableIdentifier,
    location: string,
    content: Uint8Array,
    error: Error,
  ): Promise<CommitResult | undefined> {
    const code = error instanceof IcebergError ? error.code : undefined
    if (code === 'storage_denied' || code === 'storage_unsupported' || code === 'location_invalid') {
      return { outcome: 'not_applied', why: 'rejected', error, final: true }
    }
    try {
      // A file that exists is ours when the storage, or a network file system, repeated the write.
      const found = await this.#storage.read(location)
      const taken = { ...conflict(identifier, 'another commit came first', error), final: true }
      return Buffer.compare(found, content) === 0 ? undefined : taken
    } catch {
      return code === 'storage_exists'
        ? conflict(identifier, 'another commit came first', error)
        : { outcome: 'unknown', error }
    }
  }

  async dropTable(identifier: TableIdentifier, { purge = false }: { purge?: boolean } = {}): Promise<void> {
    this.#assertWritable()
    const folder = this.#tableFolder(identifier)
    if (!purge) throw this.#unsupported(`cannot forget ${tableName(identifier)} without deleting it: give purge`)
    if ((await currentVersion(this.#storage, folder)) === undefined) throw tableNotFound(this.name, identifier)
    const versions: Version[] = []
    const rest: string[] = []
    for await (const { location } of this.#storage.list(folder)) {
      const version = versionIn(metadataFolder(folder), location)
      if (version === undefined) rest.push(location)
      else versions.push(version)
    }
    // Oldest first, and data last: whatever stops it, the table is whole until it is gone.
    versions.sort((a, b) => a.number - b.number)
    for (const { location } of versions) await this.#deleteAll(identifier, [location])
    await this.#deleteAll(identifier, rest)
    await this.#storage.removeFolder(folder)
  }

  async #deleteAll(identifier: TableIdentifier, locations: string[]): Promise<void> {
    const [failed] = (await this.#storage.delete(locations)).failed
    if (failed === undefined) return
    throw new IcebergError(
      'storage_failed',
      `${tableName(identifier)} was not wholly deleted: ${failed.error.message}`,
      {
        cause: failed.error,
      },
    )
  }

  async renameTable(): Promise<void> {
    throw this.#unsupported('cannot rename tables: their path is their name')
  }

  async registerTable(): Promise<LoadedTable> {
    throw this.#unsupported('cannot register tables: they are found by their path')
  }

  async #childrenOf(namespace: Namespace): Promise<{ name: string; isTable: boolean }[]> {
    const folder = namespace.length === 0 ? this.#warehouse : this.#folderOf(namespace)
    const names = (await this.#storage.folders(folder)).toSorted()
    return Promise.all(
      names.map(async (name) => ({
        name,
        isTable: await this.#storage.folderExists(metadataFolder(below(folder, name))),
      })),
    )
  }

  async #assertNamespace(namespace: Namespace): Promise<void> {
    const folder = this.#folderOf(namespace)
    const isTable = await this.#storage.folderExists(metadataFolder(folder))
    if (isTable || !(await this.#storage.folderExists(folder))) throw namespaceNotFound(this.name, namespace)
  }

  #tableFolder({ namespace, name }: TableIdentifier): string {
    return this.#folderOf([...namespace, name])
  }

  #folderOf(levels: readonly string[]): string {
    if (levels.length === 0) throw new IcebergError('name_invalid', 'A namespace has no level: give at least one.')
    for (const level of levels) {
      if (['', '.', '..', 'metadata'].includes(level) || /[/\\\0]/.test(level)) {
        throw new IcebergError('name_invalid', `"${level}" cannot name a namespace or table that is a folder.`)
      }
    }
    return below(this.#warehouse, ...levels)
  }

  #loaded(identifier: TableIdentifier, metadata: TableMetadata, metadataLocation: string): LoadedTable {
    return { identifier, metadata, metadataLocation, storage: this.#storage, config: {} }
  }

  #assertWritable(): void {
    if (this.#readOnly) {
      throw this.#unsupported(
        'only reads on an object store: give writeToObjectStore if all its writers create exclusively',
      )
    }
  }

  #unsupported(what: string): IcebergError {
    return new IcebergError('catalog_unsupported', `The file system catalog ${this.name} ${what}.`)
  }
}

/** What a table in folders may not say or change. */
function propertyProblem(next: TableMetadata, base: TableMetadata | undefined): string | undefined {
  if (propertyOf(next, tableProperties.metadataPath) !== undefined)
    return 'keeps metadata in the folder of its table: remove write.metadata.path'
  if (base !== undefined && base.location !== next.location)
    return 'finds tables by their path: a location cannot change'
  const codec = (metadata: TableMetadata | undefined): string =>
    propertyOf(metadata ?? { properties: {} }, tableProperties.metadataCodec)
  if (codec(next) !== codec(base)) return 'cannot change how metadata is compressed (write.metadata.compression-codec)'
  return undefined
}
