import { createHash } from 'node:crypto'
import { sql, type CallerClient, type EngineDatabase } from '@fencepost/engine'
import { ApiError } from '../error.ts'
import { relationsOf } from '../relations.ts'

/*
 * Idempotency: the first accepted answer under a key is given again for 24 hours.
 *
 * The key is taken by an insert, the job is submitted and the answer written beside the key, all in one transaction. A
 * second request with the key waits at that insert until the first has ended: it then finds the answer, or, where the
 * first was refused and rolled back, takes the key itself. So a refusal is never kept, because it changed nothing.
 */

export interface Key {
  caller: string
  key: string
  hash: Buffer
}

const keptHours = 24

/** What two requests must have in common to be the same: the operation and the body, whatever the order of its fields. */
export function requestHash(operation: string, body: unknown): Buffer {
  return createHash('sha256')
    .update(JSON.stringify([operation, sorted(body)]))
    .digest()
}

/** Does the work once for a key, in a transaction of its own. What the work throws rolls everything back. */
export async function once<T>(
  database: EngineDatabase,
  { caller, key, hash }: Key,
  work: (client: CallerClient) => Promise<T>,
): Promise<{ answer: T; replayed: boolean }> {
  return database.clientTransaction('idempotency', async (db, client) => {
    const t = relationsOf(db)
    const taken = await db.query(
      'idempotency.take',
      sql`insert into ${t.idempotencyKeys} as kept (caller, key, request_hash, created_at)
          values (${caller}, ${key}, ${hash}, ${t.now})
          on conflict (caller, key) do update
             set request_hash = excluded.request_hash, answer = null, created_at = excluded.created_at
           where kept.created_at <= excluded.created_at - ${keptHours} * interval '1 hour'
          returning key`,
    )
    if (taken.length === 0) {
      const [kept] = await db.query<{ request_hash: Buffer; answer: string }>(
        'idempotency.get',
        sql`select request_hash, answer from ${t.idempotencyKeys} where caller = ${caller} and key = ${key}`,
      )
      if (kept !== undefined && kept.request_hash.equals(hash)) {
        return { answer: JSON.parse(kept.answer) as T, replayed: true }
      }
      throw new ApiError('idempotency_mismatch', 'This Idempotency-Key was used before with another request.', {
        details: { idempotency_key: key },
      })
    }
    const answer = await work(client)
    await db.query(
      'idempotency.keep',
      sql`update ${t.idempotencyKeys} set answer = ${JSON.stringify(answer)} where caller = ${caller} and key = ${key}`,
    )
    return { answer, replayed: false }
  })
}

/** Forgets keys that are too old to be answered. */
export async function forgetOldKeys(database: EngineDatabase): Promise<void> {
  const t = relationsOf(database)
  await database.query(
    'idempotency.forget',
    sql`delete from ${t.idempotencyKeys} where created_at <= ${t.now} - ${keptHours} * interval '1 hour'`,
  )
}

function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted)
  if (typeof value !== 'object' || value === null) return value
  // Still an object: a list of its fields would look like an array that holds the same names and values.
  return Object.fromEntries(
    Object.entries(value)
      .map(([name, one]): [string, unknown] => [name, sorted(one)])
      .sort(([a], [b]) => (a < b ? -1 : 1)),
  )
}
