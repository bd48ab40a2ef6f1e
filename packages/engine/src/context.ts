import type { Database } from './database/database.ts'
import type { Logger } from './logger.ts'
import type { Operation } from './operation.ts'
import type { EngineLimits } from './options.ts'
import type { Telemetry } from './telemetry.ts'
import type { Wake } from './wake.ts'

/** What one engine's parts share. */
export interface Context {
  readonly database: Database
  /** Where the database is, for connections that are not of the pool. */
  readonly url: string
  readonly operations: ReadonlyMap<string, Operation>
  readonly limits: EngineLimits
  readonly logger: Logger
  readonly telemetry: Telemetry
  readonly wake: Wake
  /** Whether it was opened to run migrations, or to refuse a schema of another version. */
  readonly migrates: boolean
  /** Whether every claim waits for the disk. */
  readonly durableClaims: boolean
  /** What processes of isolated handlers are given beside the above. */
  readonly handlerProcess: {
    /** The address of the module that exports the operations. */
    readonly operationsModule: string | undefined
    readonly maxConnections: number
    readonly connectTimeoutMs: number
    readonly answerTimeoutMs: number
    readonly idleTransactionTimeoutMs: number
    readonly lockTimeoutMs: number
    readonly preparedStatements: boolean
  }
}
