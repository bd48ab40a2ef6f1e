import type { Database } from './database/database.ts'
import type { Logger } from './logger.ts'
import type { Operation } from './operation.ts'
import type { EngineLimits } from './options.ts'
import type { Wake } from './wake.ts'

/** What one engine's parts share. */
export interface Context {
  readonly database: Database
  readonly operations: ReadonlyMap<string, Operation>
  readonly limits: EngineLimits
  readonly logger: Logger
  readonly wake: Wake
}
