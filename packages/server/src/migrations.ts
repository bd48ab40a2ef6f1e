import type { MigrationSet } from '@fencepost/engine'

/** The migrations of what the HTTP API keeps: tokens and idempotency keys. */
export const serverMigrations: MigrationSet = {
  package: 'server',
  directory: new URL('../migrations/', import.meta.url),
}
