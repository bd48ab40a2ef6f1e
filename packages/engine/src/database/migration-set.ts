import type pg from 'pg'
import { relationsOf } from './relations.ts'

/** The numbered migrations of one package, in a folder of its own, with a version of its own. */
export interface MigrationSet {
  /** Names the set in the database and in messages. */
  readonly package: string
  readonly directory: URL
}

export const engineMigrations: MigrationSet = {
  package: 'engine',
  directory: new URL('../../migrations/', import.meta.url),
}

/*
 * Which versions were applied. The engine's are in `migrations`, where every release looks for them: an older release
 * must not take another package's version for its own. All other sets share `package_migrations`.
 */

/** Returns the last version of the set that was applied; 0 where there is none. */
export async function recordedVersion(db: pg.Pool | pg.ClientBase, schema: string, set: MigrationSet): Promise<number> {
  const { table, where, values } = recordsOf(schema, set)
  const there = await db.query<{ there: boolean }>('select to_regclass($1) is not null as there', [table])
  if (!there.rows[0]?.there) return 0
  const { rows } = await db.query<{ current: number }>(
    `select coalesce(max(version), 0) as current from ${table} ${where}`,
    values,
  )
  return rows[0]?.current ?? 0
}

/** Records a version in the transaction that applies it. */
export async function recordVersion(
  client: pg.ClientBase,
  schema: string,
  set: MigrationSet,
  { version, name }: { version: number; name: string },
): Promise<void> {
  const { table } = recordsOf(schema, set)
  if (set === engineMigrations) {
    await client.query(
      `create table if not exists ${table}
         (version integer primary key, name text not null, applied_at timestamptz not null default now())`,
    )
    await client.query(`insert into ${table} (version, name) values ($1, $2)`, [version, name])
    return
  }
  await client.query(
    `create table if not exists ${table}
       (package text, version integer, name text not null, applied_at timestamptz not null default now(),
        primary key (package, version))`,
  )
  await client.query(`insert into ${table} (package, version, name) values ($1, $2, $3)`, [set.package, version, name])
}

function recordsOf(schema: string, set: MigrationSet): { table: string; where: string; values: string[] } {
  const { migrations, packageMigrations } = relationsOf(schema)
  if (set === engineMigrations) return { table: migrations.text, where: '', values: [] }
  return { table: packageMigrations.text, where: 'where package = $1', values: [set.package] }
}
