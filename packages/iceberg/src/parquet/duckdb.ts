import { rm } from 'node:fs/promises'
import { DuckDBInstance, type DuckDBConnection, type DuckDBResult, type JS } from '@duckdb/node-api'
import { IcebergError } from '../errors.ts'
import { temporaryFolder } from '../storage/temporary-folder.ts'

export interface DuckDbOptions {
  /** Bytes DuckDB may use before it spills to disk. Default 1 GiB. */
  memoryBytes?: number
  /** Default: as many as the machine has cores. */
  threads?: number
  /** Where a folder for what does not fit in memory is made. Default: the system's folder for temporary files. */
  temporaryFolder?: string
  /** Bytes that may be spilled. Default: what DuckDB takes, 90 % of the free disk. */
  maxTemporaryBytes?: number
}

/**
 * An in-memory DuckDB that works on local files. It loads no extension that it was not built with, and knows one time
 * zone, UTC. Close it: its threads and its folder stay until then.
 */
export class DuckDb {
  readonly #instance: DuckDBInstance
  readonly #folder: string
  readonly #connections = new Set<DuckDBConnection>()
  #closed: Promise<void> | undefined

  private constructor(instance: DuckDBInstance, folder: string) {
    this.#instance = instance
    this.#folder = folder
  }

  static async open(options: DuckDbOptions = {}): Promise<DuckDb> {
    const folder = await temporaryFolder('duckdb', options.temporaryFolder)
    try {
      const instance = await DuckDBInstance.create(':memory:', settings(options, folder))
      return new DuckDb(instance, folder)
    } catch (error) {
      await rm(folder, { recursive: true, force: true })
      throw failed('DuckDB could not be started', error)
    }
  }

  /** Runs one statement on a connection of its own, and returns its rows: for small results. */
  async query(sql: string): Promise<Record<string, JS>[]> {
    return await this.using(async (connection) => {
      const reader = await explained(connection.runAndReadAll(sql))
      return reader.getRowObjectsJS()
    })
  }

  /** A connection, with everything temporary that is made on it, for as long as `work` takes. */
  async using<T>(work: (connection: DuckDBConnection) => Promise<T>): Promise<T> {
    const connection = await this.connect()
    try {
      return await work(connection)
    } finally {
      this.disconnect(connection)
    }
  }

  async connect(): Promise<DuckDBConnection> {
    if (this.#closed !== undefined) throw new IcebergError('parquet_failed', 'DuckDB was asked after it was closed.')
    const connection = await this.#instance.connect()
    this.#connections.add(connection)
    await explained(connection.run(`set TimeZone = 'UTC'`))
    return connection
  }

  disconnect(connection: DuckDBConnection): void {
    if (this.#connections.delete(connection)) connection.closeSync()
  }

  /** Ends what is run on a connection: it fails. The connection can be used again. */
  interrupt(connection: DuckDBConnection): void {
    if (this.#connections.has(connection)) connection.interrupt()
  }

  /** Ends every connection and removes what was spilled. */
  close(): Promise<void> {
    this.#closed ??= this.#close()
    return this.#closed
  }

  async #close(): Promise<void> {
    for (const connection of this.#connections) {
      connection.interrupt()
      connection.closeSync()
    }
    this.#connections.clear()
    this.#instance.closeSync()
    await rm(this.#folder, { recursive: true, force: true })
  }
}

function settings(options: DuckDbOptions, folder: string): Record<string, string> {
  const { memoryBytes = 1024 ** 3, threads, maxTemporaryBytes } = options
  return {
    memory_limit: `${memoryBytes}B`,
    temp_directory: folder,
    autoinstall_known_extensions: 'false',
    autoload_known_extensions: 'false',
    ...(threads === undefined ? {} : { threads: String(threads) }),
    ...(maxTemporaryBytes === undefined ? {} : { max_temp_directory_size: `${maxTemporaryBytes}B` }),
  }
}

/** Runs a statement whose rows come in chunks, so that a large result is never in memory as a whole. */
export function streamRows(connection: DuckDBConnection, sql: string): Promise<DuckDBResult> {
  return explained(connection.stream(sql))
}

/** Runs a statement for its effect. */
export async function execute(connection: DuckDBConnection, sql: string): Promise<void> {
  await explained(connection.run(sql))
}

export async function explained<T>(work: Promise<T>): Promise<T> {
  try {
    return await work
  } catch (error) {
    throw failed('DuckDB failed', error)
  }
}

function failed(what: string, error: unknown): IcebergError {
  const message = error instanceof Error ? error.message : String(error)
  return new IcebergError('parquet_failed', `${what}: ${message}`, { cause: error })
}

/** A text as SQL has it: 'it''s'. */
export function sqlText(text: string): string {
  return `'${text.replaceAll("'", "''")}'`
}

/** A name as SQL has it: "a ""b""". */
export function sqlName(name: string): string {
  return `"${name.replaceAll('"', '""')}"`
}
