import { HadoopCatalog, JdbcCatalog, RestCatalog, type Catalog, type LoadedTable } from '@fencepost/iceberg'
import { PermanentError } from '@fencepost/engine'
import pg from 'pg'
import { identifierOf, type TableAddress } from './address.ts'
import type { CatalogConfig, CatalogsConfig } from './catalogs-file.ts'
import { identityOf } from './same-postgres.ts'

/** A catalog that was opened. */
export interface OpenedCatalog {
  readonly name: string
  readonly type: CatalogConfig['type']
  readonly catalog: Catalog
  /** Asks which Postgres a JDBC catalog is in now: see same-postgres.ts. Others are in none. */
  readonly postgres: () => Promise<string | undefined>
  readonly close: () => Promise<void>
}

const connectTimeoutMs = 10_000
const idleTransactionMs = 30_000
const inNone = async () => undefined

/** The configured catalogs, each opened when it is first needed and again after a failure. */
export class Catalogs {
  readonly #config: CatalogsConfig
  readonly #jobsDatabase: string | undefined
  readonly #opened = new Map<string, Promise<OpenedCatalog>>()

  /** `jobsDatabase` is where a JDBC catalog without a database of its own is. */
  constructor(config: CatalogsConfig, jobsDatabase?: string) {
    this.#config = config
    this.#jobsDatabase = jobsDatabase
  }

  get defaultName(): string {
    return this.#config.default
  }

  get names(): readonly string[] {
    return Object.keys(this.#config.catalogs)
  }

  typeOf(name: string): CatalogConfig['type'] | undefined {
    return this.#config.catalogs[name]?.type
  }

  /** Opens the catalog, or returns the one that is open; undefined for a name that is not configured. */
  async find(name: string): Promise<OpenedCatalog | undefined> {
    const config = Object.hasOwn(this.#config.catalogs, name) ? this.#config.catalogs[name] : undefined
    if (config === undefined) return undefined
    const opened = this.#opened.get(name) ?? openCatalog(name, config, this.#jobsDatabase)
    this.#opened.set(name, opened)
    opened.catch(() => this.#opened.delete(name))
    return opened
  }

  /** Opens a catalog that must be configured. */
  async open(name: string): Promise<OpenedCatalog> {
    const found = await this.find(name)
    if (found === undefined) {
      throw new PermanentError(`There is no catalog ${name} in the configuration of this process.`)
    }
    return found
  }

  async load(address: TableAddress, signal?: AbortSignal): Promise<LoadedTable> {
    const { catalog } = await this.open(address.catalog)
    return catalog.loadTable(identifierOf(address), signal === undefined ? {} : { signal })
  }

  async close(): Promise<void> {
    const all = [...this.#opened.values()]
    this.#opened.clear()
    for (const one of all) await one.then(({ close }) => close()).catch(() => {}) // it never opened
  }
}

async function openCatalog(
  name: string,
  config: CatalogConfig,
  jobsDatabase: string | undefined,
): Promise<OpenedCatalog> {
  switch (config.type) {
    case 'jdbc':
      return openJdbc(name, config, jobsDatabase)
    case 'rest':
      return { name, type: 'rest', catalog: await openRest(name, config), postgres: inNone, close: async () => {} }
    case 'files': {
      const { warehouse, properties, write_to_object_store: writeToObjectStore = false } = config
      const catalog = new HadoopCatalog({ name, warehouse, properties, writeToObjectStore })
      return { name, type: 'files', catalog, postgres: inNone, close: async () => {} }
    }
  }
}

async function openJdbc(
  name: string,
  config: Extract<CatalogConfig, { type: 'jdbc' }>,
  jobsDatabase: string | undefined,
): Promise<OpenedCatalog> {
  const url = config.database ?? jobsDatabase
  if (url === undefined) throw new Error(`The catalog ${name} has no database, and there is none of jobs to put it in.`)
  const pool = new pg.Pool({
    connectionString: url,
    connectionTimeoutMillis: connectTimeoutMs,
    // A commit of a process that has stopped must not hold the fence of its job for ever.
    idle_in_transaction_session_timeout: idleTransactionMs,
    max: 4,
  })
  pool.on('error', () => {}) // an idle connection broke; the next one is new
  try {
    const { warehouse, properties } = config
    const catalog = await JdbcCatalog.open({ name: config.catalog_name ?? name, database: pool, warehouse, properties })
    return { name, type: 'jdbc', catalog, postgres: () => identityOf(pool), close: () => pool.end() }
  } catch (error) {
    await pool.end()
    throw error
  }
}

async function openRest(name: string, config: Extract<CatalogConfig, { type: 'rest' }>): Promise<Catalog> {
  const { url, warehouse, token, properties, headers, timeout_ms: timeoutMs } = config
  return RestCatalog.open({
    name,
    url,
    properties,
    ...(warehouse === undefined ? {} : { warehouse }),
    ...(token === undefined ? {} : { auth: { type: 'bearer', token } }),
    ...(headers === undefined ? {} : { headers }),
    ...(timeoutMs === undefined ? {} : { timeoutMs }),
  })
}
