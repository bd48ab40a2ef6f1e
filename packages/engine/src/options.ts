import { pathToFileURL } from 'node:url'
import { checkInteger, checkKey } from './check.ts'
import type { MigrationSet } from './database/migration-set.ts'
import { FencepostError } from './errors.ts'
import { silentLogger, type Logger } from './logger.ts'
import type { Operation } from './operation.ts'
import type { WakeUpTransport } from './wake.ts'

/** How an engine is opened. */
export interface EngineOptions {
  /** A Postgres URL; DATABASE_URL if left out. Without either, an embedded one is started in `.fencepost/postgres`. */
  database?: string | undefined
  /** The schema that holds the engine's relations. */
  schema?: string
  operations?: readonly Operation[]
  /** The path or file URL of a module that exports `operations`: what processes of isolated handlers import. */
  operationsModule?: string | URL
  /** The migrations of packages on top of the engine, applied after its own. */
  migrations?: readonly MigrationSet[]
  /** Run the migrations when opening; otherwise a schema of another version is refused. */
  migrate?: boolean
  /** Names this process in what it claims; unique, or left out. */
  workerId?: string
  maxConnections?: number
  connectTimeoutMs?: number
  /** How long Postgres may take over a statement of the engine before its connection is taken for dead. */
  answerTimeoutMs?: number
  /** How long a transaction of the engine, or attempt.transaction(), may be idle before Postgres ends it. */
  idleTransactionTimeoutMs?: number
  /** How long a statement of the engine may wait for a lock. */
  lockTimeoutMs?: number
  /** Plan every statement once per connection. Turn it off behind a pooler that gives a connection to a transaction. */
  preparedStatements?: boolean
  /** Wait for the disk at every claim, also where a claim that Postgres forgets in a crash would do no harm. */
  durableClaims?: boolean
  /** The largest payload, result, event or step result, as JSON. */
  maxPayloadBytes?: number
  /** How old a claim must be before recover() takes its job for stuck. */
  staleMs?: number
  /** How long finished jobs are kept by retain(). */
  retentionMs?: number
  /** How long after a wake-up the next ones are collected, to be sent as one. */
  wakeDelayMs?: number
  /** How work is announced to workers, and how the workers of this engine listen: over Postgres, or by rabbitMq(). */
  wakeUp?: 'listen' | WakeUpTransport
  logger?: Logger
}

export interface EngineLimits {
  maxPayloadBytes: number
  staleMs: number
  retentionMs: number
}

export interface CheckedOptions extends EngineLimits {
  database: string | undefined
  schema: string
  operations: ReadonlyMap<string, Operation>
  operationsModule: string | undefined
  migrations: readonly MigrationSet[]
  migrate: boolean
  workerId: string | undefined
  maxConnections: number
  connectTimeoutMs: number
  answerTimeoutMs: number
  idleTransactionTimeoutMs: number
  lockTimeoutMs: number
  preparedStatements: boolean
  durableClaims: boolean
  wakeDelayMs: number
  wakeUp: 'listen' | WakeUpTransport
  logger: Logger
}

const day = 86_400_000

export const engineDefaults = {
  schema: 'fencepost',
  migrate: true,
  maxConnections: 10,
  connectTimeoutMs: 10_000,
  answerTimeoutMs: 120_000,
  idleTransactionTimeoutMs: 30_000,
  lockTimeoutMs: 60_000,
  preparedStatements: true,
  durableClaims: false,
  maxPayloadBytes: 1_048_576,
  staleMs: 1_800_000,
  retentionMs: 90 * day,
  wakeDelayMs: 5,
  wakeUp: 'listen',
} as const

const schemaPattern = /^[a-z_][a-z0-9_]{0,50}$/

/** Checks the options once, at the edge, and fills in the defaults. */
export function checkOptions(options: EngineOptions): CheckedOptions {
  const schema = options.schema ?? engineDefaults.schema
  if (!schemaPattern.test(schema) || schema.startsWith('pg_')) {
    throw new FencepostError(
      'options_invalid',
      `schema is ${JSON.stringify(schema)}; give lower-case letters, digits and _, at most 51, not beginning with pg_.`,
    )
  }
  const operations = new Map<string, Operation>()
  for (const operation of options.operations ?? []) {
    if (operations.has(operation.name)) {
      throw new FencepostError('options_invalid', `Two operations are named ${operation.name}; names are unique.`)
    }
    operations.set(operation.name, operation)
  }
  const number = (
    name:
      | 'maxConnections'
      | 'connectTimeoutMs'
      | 'answerTimeoutMs'
      | 'idleTransactionTimeoutMs'
      | 'lockTimeoutMs'
      | 'maxPayloadBytes'
      | 'wakeDelayMs',
    min: number,
  ) => checkInteger(options[name] ?? engineDefaults[name], name, min)
  const duration = (name: 'staleMs' | 'retentionMs') =>
    checkInteger(options[name] ?? engineDefaults[name], name, 0, Number.MAX_SAFE_INTEGER)
  return {
    database: options.database ?? process.env['DATABASE_URL'],
    schema,
    operations,
    operationsModule: moduleAddress(options.operationsModule),
    migrations: options.migrations ?? [],
    migrate: options.migrate ?? engineDefaults.migrate,
    workerId: checkKey(options.workerId, 'workerId'),
    maxConnections: number('maxConnections', 1),
    connectTimeoutMs: number('connectTimeoutMs', 1),
    answerTimeoutMs: number('answerTimeoutMs', 1),
    idleTransactionTimeoutMs: number('idleTransactionTimeoutMs', 1),
    lockTimeoutMs: number('lockTimeoutMs', 1),
    preparedStatements: options.preparedStatements ?? engineDefaults.preparedStatements,
    durableClaims: options.durableClaims ?? engineDefaults.durableClaims,
    maxPayloadBytes: number('maxPayloadBytes', 2),
    wakeDelayMs: number('wakeDelayMs', 0),
    wakeUp: options.wakeUp ?? engineDefaults.wakeUp,
    staleMs: duration('staleMs'),
    retentionMs: duration('retentionMs'),
    logger: options.logger ?? silentLogger,
  }
}

// A path is relative to the working directory, as everywhere in Node; `import()` would take it relative to itself.
function moduleAddress(module: string | URL | undefined): string | undefined {
  const address = module === undefined ? undefined : String(module)
  return address === undefined || address.startsWith('file:') ? address : pathToFileURL(address).href
}
