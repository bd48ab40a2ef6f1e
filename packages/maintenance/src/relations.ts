import { relationOf, type MigrationSet, type PackageDb } from '@fencepost/engine'

/** The migrations of what the application keeps: the inventory and the health of tables. */
export const maintenanceMigrations: MigrationSet = {
  package: 'maintenance',
  directory: new URL('../migrations/', import.meta.url),
}

/** The relations that those make, ready to be spliced into statements. */
export function relationsOf({ t }: PackageDb) {
  return {
    catalogs: relationOf(t.schema, 'maintenance_catalogs'),
    tables: relationOf(t.schema, 'maintenance_tables'),
    health: relationOf(t.schema, 'maintenance_health'),
    now: t.now,
  }
}
