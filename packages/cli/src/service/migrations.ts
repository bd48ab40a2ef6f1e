import type { MigrationSet } from '@fencepost/engine'
import { serverMigrations } from '@fencepost/server'

/** The migrations of every package on top of the engine, in the order in which they are applied. */
export const migrations: readonly MigrationSet[] = [serverMigrations]
