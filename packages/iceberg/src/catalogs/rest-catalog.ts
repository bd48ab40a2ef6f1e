import { IcebergError } from '../errors.ts'
import type { Json } from '../json/json.ts'
import { ObjectReader } from '../json/object-reader.ts'
import { partitionSpecToJson } from '../schema/partition-spec-json.ts'
import { schemaToJson } from '../schema/schema-json.ts'
import { sortOrderToJson } from '../schema/sort-order-json.ts'
import { inSlices } from '../json/steps.ts'
import { tableMetadataSteps } from '../metadata/table-metadata-json.ts'
import type { S3Options } from '../storage/s3-client.ts'
import { RoutedStorage, type PrefixedProperties } from '../storage/storage-for.ts'
import {
  askGuard,
  assertNoTransaction,
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
import type { RestAuth } from './rest-auth.ts'
import { commitBody, commitFailure } from './rest-commit.ts'
import { RestConfig, textItem } from './rest-config.ts'
import { generalError, RestHttp, RestRefusal, RestSilence, type RestAnswer, type RestRequest } from './rest-http.ts'

export interface RestCatalogOptions {
  name: string
  /** Of the catalog, without `/v1`. */
  url: string
  /** Which of the server's warehouses. */
  warehouse?: string
  auth?: RestAuth
  /** Properties of the client; what the server overrides, it overrides. */
  properties?: Readonly<Record<string, string>>
  /** Sent with every request. */
  headers?: Readonly<Record<string, string>>
  /** Asks for credentials of the storage. Default true. */
  vendedCredentials?: boolean
  /** Removes many snapshots in one update; servers before Iceberg 1.9.1 or so refuse that. Default false. */
  bulkRemoval?: boolean
  /** For one request. Default 60,000. */
  timeoutMs?: number
  /** Tries of a request that changes nothing. Default 4. */
  maxAttempts?: number
  s3?: S3Options
}

/** Tables of a server that speaks Iceberg's REST protocol. */
export class RestCatalog implements Catalog {
  readonly name: string
  readonly config: RestConfig
  readonly #http: RestHttp
  readonly #options: RestCatalogOptions

  private constructor(options: RestCatalogOptions, http: RestHttp, config: RestConfig) {
    this.name = options.name
    this.#options = options
    this.#http = http
    this.config = config
  }

  /** Asks the server for its configuration, and goes where that says. */
  static async open(options: RestCatalogOptions): Promise<RestCatalog> {
    const http = httpFor(options.url, options)
    const query = options.warehouse === undefined ? {} : { query: { warehouse: options.warehouse } }
    const answer = await http.read({ method: 'GET', path: 'v1/config', ...query }).catch((error: unknown) => {
      throw generalError(error)
    })
    const config = new RestConfig(answer.body, { ...options.properties, uri: options.url })
    const { uri = options.url } = config.properties
    return new RestCatalog(options, uri === options.url ? http : httpFor(uri, options), config)
  }

  async listNamespaces(parent: Namespace = []): Promise<Namespace[]> {
    const query = parent.length === 0 ? {} : { parent: this.config.parentText(parent) }
    const pages = this.#pages(this.config.path('namespaces'), query, 'namespaces', { parent })
    const namespaces: Namespace[] = []
    for await (const item of pages) namespaces.push(levelsOf(item))
    return namespaces
  }

  async createNamespace(namespace: Namespace, properties: Readonly<Record<string, string>> = {}): Promise<void> {
    this.config.namespacePath(namespace) // checks the name
    const body = { namespace: [...namespace], properties: { ...properties } }
    await this.#change({ method: 'POST', path: this.config.path('namespaces'), body }, (refusal) =>
      refusal.status === 409 ? namespaceExists(this.name, namespace, refusal) : undefined,
    )
  }

  async namespaceProperties(namespace: Namespace): Promise<Record<string, string>> {
    const { body } = await this.#read({ method: 'GET', path: this.config.namespacePath(namespace) }, (refusal) =>
      refusal.status === 404 ? namespaceNotFound(this.name, namespace, refusal) : undefined,
    )
    return new ObjectReader(body, 'the namespace').optionalStrings('properties') ?? {}
  }

  async dropNamespace(namespace: Namespace): Promise<void> {
    await this.#change({ method: 'DELETE', path: this.config.namespacePath(namespace) }, (refusal) => {
      // Servers of older releases say it with 400.
      const notEmpty = refusal.status === 409 || refusal.type === 'NamespaceNotEmptyException'
      if (notEmpty) return namespaceNotEmpty(this.name, namespace, refusal)
      return refusal.status === 404 ? namespaceNotFound(this.name, namespace, refusal) : undefined
    })
  }

  async listTables(namespace: Namespace): Promise<TableIdentifier[]> {
    const pages = this.#pages(this.config.namespacePath(namespace, 'tables'), {}, 'identifiers', { parent: namespace })
    const tables: TableIdentifier[] = []
    for await (const item of pages) {
      const reader = new ObjectReader(item, 'a table of the list')
      tables.push({ namespace: reader.array('namespace', textItem), name: reader.string('name') })
    }
    return tables
  }

  async loadTable(identifier: TableIdentifier, { known, signal }: LoadOptions = {}): Promise<LoadedTable> {
    const headers = { ...this.#delegation(), ...(known?.etag !== undefined && { 'if-none-match': known.etag }) }
    const path = this.config.tablePath(identifier)
    const request: RestRequest = { method: 'GET', path, headers, query: { snapshots: 'all' } }
    const answer = await this.#read(signal === undefined ? request : { ...request, signal }, (refusal) =>
      this.#missing(identifier, refusal),
    )
    if (answer.status === 304 && known !== undefined) return known
    return await this.#loaded(identifier, answer)
  }

  async createTable(identifier: TableIdentifier, table: NewTable): Promise<LoadedTable> {
    const { schema, partitionSpec, sortOrder, location, properties, formatVersion } = table
    const version = formatVersion === undefined ? {} : { 'format-version': String(formatVersion) }
    const body: Json = {
      name: identifier.name,
      schema: schemaToJson({ schemaId: 0, identifierFieldIds: [], ...schema }),
      'stage-create': false,
      properties: { ...properties, ...version },
      ...(location !== undefined && { location }),
      ...(partitionSpec !== undefined && { 'partition-spec': partitionSpecToJson({ specId: 0, ...partitionSpec }) }),
      ...(sortOrder !== undefined && { 'write-order': sortOrderToJson({ orderId: 1, ...sortOrder }) }),
    }
    return this.#make(identifier, 'tables', body)
  }

  async registerTable(identifier: TableIdentifier, metadataLocation: string): Promise<LoadedTable> {
    this.config.require('POST /v1/{prefix}/namespaces/{namespace}/register', 'register tables')
    return this.#make(identifier, 'register', { name: identifier.name, 'metadata-location': metadataLocation })
  }

  async #make(identifier: TableIdentifier, last: string, body: Json): Promise<LoadedTable> {
    this.config.tablePath(identifier) // checks the name
    const path = this.config.namespacePath(identifier.namespace, last)
    const answer = await this.#change({ method: 'POST', path, body, headers: this.#delegation() }, (refusal) => {
      if (refusal.status === 409) return tableExists(this.name, identifier, refusal)
      return refusal.status === 404 ? namespaceNotFound(this.name, identifier.namespace, refusal) : undefined
    })
    return await this.#loaded(identifier, answer)
  }

  async commit(table: LoadedTable, request: CommitRequest): Promise<CommitResult> {
    const { identifier } = table
    assertNoTransaction('REST', request)
    const path = this.config.tablePath(identifier)
    const body = commitBody(identifier, request, this.#options.bulkRemoval ?? false)
    const remembers = this.config.properties['idempotency-key-lifetime'] !== undefined
    const key = remembers && request.idempotencyKey !== undefined ? { 'idempotency-key': request.idempotencyKey } : {}
    const refused = await askGuard(identifier, request.guard)
    if (refused !== undefined) return refused
    try {
      const answer = await this.#http.send({ method: 'POST', path, body, headers: key })
      return { outcome: 'applied', table: await this.#committed(table, answer) }
    } catch (error) {
      return commitFailure(this.name, identifier, error)
    }
  }

  /** The table after a commit; its answer has metadata only, so what the loaded one knew of the storage goes on. */
  async #committed(table: LoadedTable, answer: RestAnswer): Promise<LoadedTable> {
    try {
      const { identifier, storage, config } = table
      return { ...(await this.#described(identifier, answer)), identifier, storage, config }
    } catch (cause) {
      // It was done, but what it came to cannot be read: the caller looks again.
      throw new RestSilence(`The answer to a commit to ${tableName(table.identifier)} is damaged.`, cause, false)
    }
  }

  async dropTable(identifier: TableIdentifier, { purge = false }: { purge?: boolean } = {}): Promise<void> {
    const path = this.config.tablePath(identifier)
    await this.#change({ method: 'DELETE', path, query: { purgeRequested: String(purge) } }, (refusal) =>
      this.#missing(identifier, refusal),
    )
  }

  async renameTable(from: TableIdentifier, to: TableIdentifier): Promise<void> {
    this.config.require('POST /v1/{prefix}/tables/rename', 'rename tables')
    for (const identifier of [from, to]) this.config.tablePath(identifier) // checks the names
    const named = ({ namespace, name }: TableIdentifier): Json => ({ namespace: [...namespace], name })
    const body = { source: named(from), destination: named(to) }
    await this.#change({ method: 'POST', path: this.config.path('tables/rename'), body }, (refusal) => {
      if (refusal.status === 409) return tableExists(this.name, to, refusal)
      if (refusal.status !== 404) return undefined
      const noNamespace = refusal.type === 'NoSuchNamespaceException'
      return noNamespace ? namespaceNotFound(this.name, to.namespace, refusal) : tableNotFound(this.name, from, refusal)
    })
  }

  async #loaded(identifier: TableIdentifier, answer: RestAnswer): Promise<LoadedTable> {
    const described = await this.#described(identifier, answer)
    const prefixed = storageCredentials(answer.body)
    const properties = { ...this.config.properties, ...described.config }
    const { s3 } = this.#options
    const storage = new RoutedStorage(properties, prefixed, {
      ...(s3 !== undefined && { s3 }),
      ...(hasVended(described.config, prefixed) && { refresh: () => this.#freshCredentials(identifier) }),
    })
    return { identifier, storage, ...described }
  }

  async #described(identifier: TableIdentifier, { body, headers }: RestAnswer) {
    const what = `The answer about ${tableName(identifier)}`
    const reader = new ObjectReader(body, what)
    const etag = headers.get('etag')
    return {
      metadata: await inSlices(tableMetadataSteps(reader.raw('metadata') ?? null, what)),
      metadataLocation: reader.optionalString('metadata-location'),
      config: reader.optionalStrings('config') ?? {},
      ...(etag !== null && { etag }),
    }
  }

  async #freshCredentials(identifier: TableIdentifier): Promise<readonly PrefixedProperties[]> {
    const offered = 'GET /v1/{prefix}/namespaces/{namespace}/tables/{table}/credentials'
    const path = this.config.supports(offered)
      ? this.config.tablePath(identifier, 'credentials')
      : this.config.tablePath(identifier)
    const answer = await this.#read({ method: 'GET', path, headers: this.#delegation() }, () => undefined)
    const config = new ObjectReader(answer.body, 'the credentials').optionalStrings('config')
    const everywhere = config === undefined ? [] : [{ prefix: 's3', properties: config }]
    return [...everywhere, ...storageCredentials(answer.body)]
  }

  #delegation(): Record<string, string> {
    return this.#options.vendedCredentials === false ? {} : { 'x-iceberg-access-delegation': 'vended-credentials' }
  }

  #missing(identifier: TableIdentifier, refusal: RestRefusal): Error | undefined {
    if (refusal.status !== 404) return undefined
    const noNamespace = refusal.type === 'NoSuchNamespaceException'
    return noNamespace
      ? namespaceNotFound(this.name, identifier.namespace, refusal)
      : tableNotFound(this.name, identifier, refusal)
  }

  /** The items of all pages. A server that knows no pages gives everything at once. */
  async *#pages(
    path: string,
    query: Readonly<Record<string, string>>,
    key: string,
    { parent }: { parent: Namespace },
  ): AsyncGenerator<Json> {
    const seen = new Set<string>()
    let pageToken = ''
    do {
      const { body } = await this.#read({ method: 'GET', path, query: { ...query, pageToken } }, (refusal) =>
        refusal.status === 404 ? namespaceNotFound(this.name, parent, refusal) : undefined,
      )
      const reader = new ObjectReader(body, `The list of ${path}`)
      yield* reader.array(key, (item) => item)
      pageToken = reader.optionalString('next-page-token') ?? ''
      if (seen.has(pageToken)) throw new IcebergError('catalog_invalid', `The list of ${path} repeats a page for ever.`)
      seen.add(pageToken)
    } while (pageToken !== '')
  }

  async #read(request: RestRequest, special: (refusal: RestRefusal) => Error | undefined): Promise<RestAnswer> {
    try {
      return await this.#http.read(request)
    } catch (error) {
      throw explained(error, special)
    }
  }

  async #change(request: RestRequest, special: (refusal: RestRefusal) => Error | undefined): Promise<RestAnswer> {
    try {
      return await this.#http.send(request)
    } catch (error) {
      throw explained(error, special)
    }
  }
}

function explained(error: unknown, special: (refusal: RestRefusal) => Error | undefined): Error {
  return (error instanceof RestRefusal ? special(error) : undefined) ?? generalError(error)
}

function httpFor(url: string, options: RestCatalogOptions): RestHttp {
  const { auth = { type: 'none' }, headers = {}, timeoutMs = 60_000, maxAttempts = 4 } = options
  return new RestHttp(url, { auth, headers, timeoutMs, maxAttempts })
}

function levelsOf(item: Json): Namespace {
  return new ObjectReader({ levels: item }, 'A namespace of the list').array('levels', textItem)
}

function storageCredentials(body: Json | undefined): PrefixedProperties[] {
  const reader = new ObjectReader(body, 'the storage credentials')
  const read = (item: Json, what: string): PrefixedProperties => {
    const entry = new ObjectReader(item, what)
    return { prefix: entry.string('prefix'), properties: entry.optionalStrings('config') ?? {} }
  }
  return reader.optionalArray('storage-credentials', read) ?? []
}

function hasVended(config: Readonly<Record<string, string>>, prefixed: readonly PrefixedProperties[]): boolean {
  return prefixed.length > 0 || 's3.access-key-id' in config
}
