import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { installed } from '../../../../scripts/interop/install.mjs'
import { requireInstalled } from './server-process.ts'

/** Spark's SQL, Iceberg's Java API in Spark's JVM (for types that Spark lacks), PyIceberg. */
export type Engine = 'spark' | 'java' | 'pyiceberg'

/** A value as scripts/interop/lossless.py writes it. */
export type Lossless = null | boolean | number | string | readonly Lossless[] | { readonly [name: string]: Lossless }
export type Row = Readonly<Record<string, Lossless>>

/** Rows have an order of the rig's own, the same for every engine. */
export interface ReadAt {
  readonly schema_id: number
  readonly rows: readonly Row[]
}

export interface ReadTable extends ReadAt {
  readonly current_snapshot_id: string | null
  readonly snapshots: Readonly<Record<string, ReadAt>>
  readonly refs: Readonly<Record<string, ReadAt & { readonly type: string; readonly snapshot_id: string }>>
}

/** A table by its metadata file, or by its name (`namespace.table`) in a catalog that was made known. */
export type Where = { readonly metadata: string } | { readonly catalog: string; readonly table: string }

export interface Engines {
  readonly versions: () => Promise<Readonly<Record<string, string>>>
  /** Makes a catalog known to both, each with the properties that it wants. */
  readonly catalog: (
    name: string,
    properties: { readonly spark: Properties; readonly pyiceberg?: Properties },
  ) => Promise<void>
  /** Every snapshot, branch and tag of the table. */
  readonly read: (engine: Engine, where: Where) => Promise<ReadTable>
  /** A statement to Spark, and the rows that it gives. */
  readonly sql: (statement: string) => Promise<readonly Row[]>
  /** PyIceberg appends; dates and the like cannot be said in JSON, so only plain columns can be given. */
  readonly append: (catalog: string, table: string, rows: readonly Row[]) => Promise<void>
  /** PyIceberg deletes what the filter says, rewriting files. */
  readonly delete: (catalog: string, table: string, where: string) => Promise<void>
  readonly close: () => Promise<void>
}

type Properties = Readonly<Record<string, string>>
interface Waiting {
  readonly resolve: (result: unknown) => void
  readonly reject: (error: Error) => void
}

/** Starts the process that holds the engines: one for many tables, because Spark takes its time to start. */
export function startEngines(): Engines {
  requireInstalled('python', installed.python)
  requireInstalled('spark', installed.sparkJars)
  const program = fileURLToPath(new URL('../../../../scripts/interop/engines.py', import.meta.url))
  const child = spawn(installed.python, [program], { stdio: ['pipe', 'pipe', 'pipe'] })
  const waiting = new Map<number, Waiting>()
  let log = ''
  let last = 0
  child.stderr.on('data', (data: Buffer) => (log = (log + data.toString()).slice(-20_000)))
  createInterface({ input: child.stdout }).on('line', (line) => {
    const answer = JSON.parse(line) as { id: number; result?: unknown; error?: string }
    const request = waiting.get(answer.id)
    waiting.delete(answer.id)
    if (answer.error === undefined) request?.resolve(answer.result)
    else request?.reject(new Error(answer.error))
  })
  const ended = once(child, 'close').then(() => {
    for (const { reject } of waiting.values()) reject(new Error(`the engines ended; they wrote:\n${log}`))
  })
  const ask = async (request: object): Promise<unknown> => {
    const id = ++last
    const answer = new Promise((resolve, reject) => waiting.set(id, { resolve, reject }))
    child.stdin.write(`${JSON.stringify({ id, ...request })}\n`)
    return answer
  }
  return {
    versions: async () => (await ask({ do: 'versions' })) as Record<string, string>,
    catalog: async (name, properties) => void (await ask({ do: 'catalog', name, ...properties })),
    read: async (engine, where) => (await ask({ do: 'read', engine, ...where })) as ReadTable,
    sql: async (statement) => (await ask({ do: 'sql', statement })) as readonly Row[],
    append: async (catalog, table, rows) => void (await ask({ do: 'append', catalog, table, rows })),
    delete: async (catalog, table, where) => void (await ask({ do: 'delete', catalog, table, where })),
    close: async () => {
      child.stdin.end()
      await ended
    },
  }
}
