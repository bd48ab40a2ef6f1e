import { readdir, readFile } from 'node:fs/promises'
import type pg from 'pg'
import { FencepostError } from '../errors.ts'
import { relationsOf } from './relations.ts'
import { identifier } from './sql.ts'

const directory = new URL('../../migrations/', import.meta.url)
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

/** The migrations of this release, in order. */
export async function listMigrations(): Promise<Migration[]> {
  const names = await readdir(directory)
  return names
    .map((name) => fileName.exec(name))
    .filter((match) => match !== null)
    .map((match) => ({ version: Number(match[1]), name: match[0] }))
    .sort((a, b) => a.version - b.version)
}

/**
 * Brings the schema to this release, forward only. Processes that start together wait for each other on an advisory
 * lock; each migration commits by itself, so a failed one leaves those before it in place.
 */
export async function migrate(pool: pg.Pool, options: { schema: string }): Promise<Migration[]> {
  const { migrations: table } = relationsOf(options.schema)
  const schema = identifier(options.schema).text
  const all = await listMigrations()
  const applied: Migration[] = []
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
      await client.query(
        `create table if not exists ${table.text}
           (version integer primary key, name text not null, applied_at timestamptz not null default now())`,
      )
      const { current, latest } = await schemaVersion(client, options)
      if (current > latest) throw newerSchema(options.schema, current, latest)
      for (const migration of all.filter(({ version }) => version > current)) {
        await apply(client, options.schema, migration)
        applied.push(migration)
      }
    } finally {
      await client.query('select pg_advisory_unlock(hashtext($1))', [`fencepost.migrate.${options.schema}`])
    }
  } finally {
    client.release(true) // its limits are off
  }
  return applied
}

/** Which version the schema has, and which one this release wants. */
export async function schemaVersion(db: pg.Pool | pg.ClientBase, options: { schema: string }): Promise<SchemaVersion> {
  const { migrations: table } = relationsOf(options.schema)
  const latest = (await listMigrations()).at(-1)?.version ?? 0
  const there = await db.query<{ there: boolean }>('select to_regclass($1) is not null as there', [table.text])
  if (!there.rows[0]?.there) return { current: 0, latest }
  const { rows } = await db.query<{ current: number }>(`select coalesce(max(version), 0) as current from ${table.text}`)
  return { current: rows[0]?.current ?? 0, latest }
}

/** Throws unless the schema is the one this release works with. */
export async function requireSchema(db: pg.Pool, options: { schema: string }): Promise<void> {
  const { current, latest } = await schemaVersion(db, options)
  if (current > latest) throw newerSchema(options.schema, current, latest)
  if (current === latest) return
  throw new FencepostError(
    current === 0 ? 'schema_missing' : 'schema_outdated',
    `Schema "${options.schema}" is at version ${current}, and this release works with ${latest}. ` +
      'Run its migrations, or open the engine with migrate: true.',
    { details: { current, latest } },
  )
}

async function apply(client: pg.PoolClient, schema: string, migration: Migration): Promise<void> {
  const text = await readFile(new URL(migration.name, directory), 'utf8')
  await client.query('begin')
  try {
    await client.query(`set local search_path to ${identifier(schema).text}, pg_catalog`)
    await client.query(text)
    await client.query(`insert into ${relationsOf(schema).migrations.text} (version, name) values ($1, $2)`, [
      migration.version,
      migration.name,
    ])
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

function newerSchema(schema: string, current: number, latest: number): FencepostError {
  return new FencepostError(
    'schema_newer',
    `Schema "${schema}" is at version ${current}, made by a newer release; this one knows versions up to ${latest}. ` +
      'Update this process before it touches the database.',
    { details: { current, latest } },
  )
}
