import { createHash, randomBytes, timingSafeEqual } from 'node:crypto'
import type { NewToken, Role } from '@fencepost/client'
import { sql, type EngineDatabase, type Sql } from '@fencepost/engine'
import { ApiError } from '../error.ts'
import { relationsOf } from '../relations.ts'

/*
 * Bearer tokens: fp_<id>_<secret>. The id is no secret and finds the row; the secret is 256 random bits. Only the
 * SHA-256 of the whole token is stored, and compared in constant time.
 */

/** A token as it is shown: everything but the secret. */
export interface StoredToken {
  token_id: string
  name: string
  role: Role
  created_at: string
  created_by: string | null
  last_used_at: string | null
  expires_at: string | null
  revoked_at: string | null
  revoked_by: string | null
}

export type Revoked = { revoked: true } | { revoked: false; why: 'not_found' | 'already_revoked' | 'last_admin' }

const tokenPattern = /^fp_([0-9a-f]{12})_[A-Za-z0-9_-]{43}$/
const shown = sql`token_id, name, role, created_at, created_by, last_used_at, expires_at, revoked_at, revoked_by`

/** True for tokens that may be used. */
const usable = (now: Sql): Sql => sql`revoked_at is null and coalesce(expires_at > ${now}, true)`

/** Makes a token. The secret is in this answer and nowhere else. */
export async function createToken(
  database: EngineDatabase,
  { name, role, expires_in_seconds: seconds }: NewToken,
  by: string | undefined,
): Promise<StoredToken & { token: string }> {
  const t = relationsOf(database)
  const tokenId = randomBytes(6).toString('hex')
  // One that has expired needs its name no more.
  await database.query(
    'tokens.expired',
    sql`update ${t.tokens} set revoked_at = ${t.now}, revoked_by = 'expired'
         where name = ${name} and revoked_at is null and expires_at <= ${t.now}`,
  )
  const token = `fp_${tokenId}_${randomBytes(32).toString('base64url')}`
  const [row] = await database.query<StoredToken>(
    'tokens.create',
    sql`insert into ${t.tokens} (token_id, name, role, hash, created_at, created_by, expires_at)
        values (${tokenId}, ${name}, ${role}, ${hashOf(token)}, ${t.now}, ${by ?? null},
                ${t.now} + ${seconds ?? null}::integer * interval '1 second')
        on conflict (name) where revoked_at is null do nothing
        returning ${shown}`,
  )
  if (row === undefined) {
    throw new ApiError('token_name_taken', `A token named ${JSON.stringify(name)} is in use: choose another name.`, {
      details: { name },
    })
  }
  return { ...row, token }
}

export async function listTokens(database: EngineDatabase): Promise<StoredToken[]> {
  const t = relationsOf(database)
  return database.query('tokens.list', sql`select ${shown} from ${t.tokens} order by created_at, token_id`)
}

/** Revokes a token: the next request with it is refused. */
export async function revokeToken(database: EngineDatabase, tokenId: string, by: string | undefined): Promise<Revoked> {
  return database.transaction('tokens.revoke', async (db) => {
    const t = relationsOf(db)
    // Locked, so that of two admins who revoke each other one stays.
    const admins = await db.query<{ token_id: string }>(
      'tokens.admins',
      sql`select token_id from ${t.tokens} where role = 'admin' and ${usable(t.now)} order by token_id for update`,
    )
    const [only, another] = admins
    if (only?.token_id === tokenId && another === undefined) return { revoked: false, why: 'last_admin' }
    const rows = await db.query(
      'tokens.revoke',
      sql`update ${t.tokens} set revoked_at = ${t.now}, revoked_by = ${by ?? null}
           where token_id = ${tokenId} and revoked_at is null returning token_id`,
    )
    if (rows.length > 0) return { revoked: true }
    const [known] = await db.query('tokens.known', sql`select from ${t.tokens} where token_id = ${tokenId}`)
    return { revoked: false, why: known === undefined ? 'not_found' : 'already_revoked' }
  })
}

/** Those of the tokens that may be used, by what was given. */
export async function findTokens(
  database: EngineDatabase,
  tokens: readonly string[],
): Promise<ReadonlyMap<string, StoredToken>> {
  const given = tokens.flatMap((token) => {
    const tokenId = tokenPattern.exec(token)?.[1]
    return tokenId === undefined ? [] : [{ token, tokenId }]
  })
  if (given.length === 0) return new Map()
  const t = relationsOf(database)
  const rows = await database.query<StoredToken & { hash: Buffer; use_is_old: boolean }>(
    'tokens.find',
    sql`select ${shown}, hash, coalesce(last_used_at < ${t.now} - interval '1 minute', true) as use_is_old
          from ${t.tokens} where token_id = any(${given.map(({ tokenId }) => tokenId)}::text[]) and ${usable(t.now)}`,
  )
  const stored = new Map(rows.map((row) => [row.token_id, row]))
  const found = new Map<string, StoredToken>()
  const oldUses: string[] = []
  for (const { token, tokenId } of given) {
    const row = stored.get(tokenId)
    if (row === undefined || !timingSafeEqual(row.hash, hashOf(token))) continue
    found.set(token, row)
    if (row.use_is_old) oldUses.push(tokenId)
  }
  await noteUses(database, oldUses)
  return found
}

/** Which of these tokens have been revoked, or have expired. */
export async function revokedAmong(database: EngineDatabase, tokenIds: readonly string[]): Promise<Set<string>> {
  const t = relationsOf(database)
  const rows = await database.query<{ token_id: string }>(
    'tokens.revoked',
    sql`select token_id from ${t.tokens} where token_id = any(${tokenIds}::text[]) and not (${usable(t.now)})`,
  )
  return new Set(rows.map((row) => row.token_id))
}

/** How many tokens there are: any at all, and those that may be used. */
export async function countTokens(database: EngineDatabase): Promise<{ all: number; usable: number }> {
  const t = relationsOf(database)
  const [row] = await database.query<{ all: number; usable: number }>(
    'tokens.count',
    sql`select count(*)::integer as all, count(*) filter (where ${usable(t.now)})::integer as usable
          from ${t.tokens}`,
  )
  return row ?? { all: 0, usable: 0 }
}

async function noteUses(database: EngineDatabase, tokenIds: readonly string[]): Promise<void> {
  if (tokenIds.length === 0) return
  const t = relationsOf(database)
  await database.query(
    'tokens.used',
    sql`update ${t.tokens} set last_used_at = ${t.now}
         where token_id = any(${tokenIds}::text[]) and coalesce(last_used_at < ${t.now} - interval '1 minute', true)`,
  )
}

function hashOf(token: string): Buffer {
  return createHash('sha256').update(token).digest()
}
