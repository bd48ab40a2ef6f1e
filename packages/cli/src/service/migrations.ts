import type { MigrationSet } from '@fencepost/engine'
import { maintenanceMigrations } from '@fencepost/maintenance'
import { serverMigrations } from '@fencepost/server'

/** The migrations of every package on top of the engine, in the order in which they are applied. */
export const migrations: readonly MigrationSet[] = [serverMigrations, maintenanceMigrations]
