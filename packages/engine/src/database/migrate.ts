import { readdir, readFile } from 'node:fs/promises'
import type pg from 'pg'
import { FencepostError } from '../errors.ts'
import { engineMigrations, recordedVersion, recordVersion, type MigrationSet } from './migration-set.ts'
import { identifier } from './sql.ts'

const fileName = /^(\d{4})-([a-z0-9-]+)\.sql$/
const oldestServer = 140000

export interface Migration {
  version: number
  name: string
}

export interface SchemaVersion {
  /** What the database has; 0 where there is no schema. */
  current: number
  /** What this release brings. */
  latest: number
}

/** Which schema, and which sets of migrations beside the engine's own. */
export interface SchemaOptions {
  schema: string
  migrations?: readonly MigrationSet[]
}

/** The migrations of this release, in order. */
export async function listMigrations(set: MigrationSet = engineMigrations): Promise<Migration[]> {
  const names = await readdir(set.directory)
  return names
    .map((name) => fileName.exec(name))
    .filter((match) => match !== null)
    .map((match) => ({ version: Number(match[1]), name: match[0] }))
    .sort((a, b) => a.version - b.version)
}

/**
 * Brings the schema to this release, forward only: first the engine's set, then the others in the order given. Processes
 * that start together wait for each other on an advisory lock. Each migration commits by itself, so a failed one leaves
 * those before it in place. Nothing is applied if any set is from a newer release.
 */
export async function migrate(pool: pg.Pool, options: SchemaOptions): Promise<(Migration & { package: string })[]> {
  const schema = identifier(options.schema).text
  const applied: (Migration & { package: string })[] = []
  const client = await pool.connect()
  try {
    await refuseOldServer(client)
    // Waiting for another process, or filling an index, takes as long as it takes.
    await client.query('set statement_timeout = 0; set lock_timeout = 0')
    await client.query('select pg_advisory_lock(hashtext($1))', [`fencepost.migrate.${options.schema}`])
    try {
      // Asked first, because creating needs a privilege that a running service may not have.
      const { rows } = await client.query<{ missing: boolean }>('select to_regnamespace($1) is null as missing', [
        schema,
      ])
      if (rows[0]?.missing) await client.query(`create schema ${schema}`)
      const sets = setsOf(options)
      const versions = new Map<MigrationSet, SchemaVersion>()
      for (const set of sets) versions.set(set, await versionOf(client, options.schema, set))
      for (const [set, version] of versions) refuseNewer(options.schema, set, version)
      for (const [set, { current }] of versions) {
        for (const migration of (await listMigrations(set)).filter(({ version }) => version > current)) {
          await apply(client, options.schema, set, migration)
          applied.push({ package: set.package, ...migration })
        }
      }
    } finally {
      await client.query('select pg_advisory_unlock(hashtext($1))', [`fencepost.migrate.${options.schema}`])
    }
  } finally {
    client.release(true) // its limits are off
  }
  return applied
}

/** Returns the version of one set in the schema, and the version that this release needs; the engine's by default. */
export async function schemaVersion(
  db: pg.Pool | pg.ClientBase,
  options: { schema: string; set?: MigrationSet },
): Promise<SchemaVersion> {
  return versionOf(db, options.schema, options.set ?? engineMigrations)
}

/** Throws unless every set has the version that this release works with. */
export async function requireSchema(db: pg.Pool, options: SchemaOptions): Promise<void> {
  for (const set of setsOf(options)) {
    const { current, latest } = await versionOf(db, options.schema, set)
    refuseNewer(options.schema, set, { current, latest })
    if (current === latest) continue
    throw new FencepostError(
      current === 0 && set === engineMigrations ? 'schema_missing' : 'schema_outdated',
      `Schema "${options.schema}" is at version ${current}${ofPackage(set)}, and this release works with ${latest}. ` +
        'Run its migrations, or open the engine with migrate: true.',
      { details: { package: set.package, current, latest } },
    )
  }
}

function setsOf({ migrations = [] }: SchemaOptions): readonly MigrationSet[] {
  return [engineMigrations, ...migrations]
}

async function versionOf(db: pg.Pool | pg.ClientBase, schema: string, set: MigrationSet): Promise<SchemaVersion> {
  const latest = (await listMigrations(set)).at(-1)?.version ?? 0
  return { current: await recordedVersion(db, schema, set), latest }
}

async function apply(client: pg.PoolClient, schema: string, set: MigrationSet, migration: Migration): Promise<void> {
  const text = await readFile(new URL(migration.name, set.directory), 'utf8')
  await client.query('begin')
  try {
    await client.query(`set local search_path to ${identifier(schema).text}, pg_catalog`)
    await client.query(text)
    await recordVersion(client, schema, set, migration)
    await client.query('commit')
  } catch (error) {
    await client.query('rollback')
    throw error
  }
}

async function refuseOldServer(client: pg.PoolClient): Promise<void> {
  const { rows } = await client.query<{ version: number }>(
    `select current_setting('server_version_num')::integer as version`,
  )
  const version = rows[0]?.version ?? 0
  if (version >= oldestServer) return
  throw new FencepostError(
    'database_version',
    `This Postgres is version ${Math.floor(version / 10000)}; version 14 or later is needed.`,
  )
}

function refuseNewer(schema: string, set: MigrationSet, { current, latest }: SchemaVersion): void {
  if (current <= latest) return
  throw new FencepostError(
    'schema_newer',
    `Schema "${schema}" is at version ${current}${ofPackage(set)}, made by a newer release; this one knows versions ` +
      `up to ${latest}. Update this process before it touches the database.`,
    { details: { package: set.package, current, latest } },
  )
}

function ofPackage(set: MigrationSet): string {
  return set === engineMigrations ? '' : ` of package ${set.package}`
}
