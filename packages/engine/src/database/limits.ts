import type pg from 'pg'

/*
 * Limits that Postgres itself keeps, so that a process that has vanished, or that blocks, holds no lock for long.
 *
 * A session of ours has all of them. Behind a pooler a session is not ours, and its other end is the pooler: there each
 * transaction has those that matter in it, and statements that are transactions by themselves cannot be left open.
 */

export interface Limits {
  /** How long a transaction may wait for its client's next statement. */
  idleTransactionTimeoutMs: number
  /** How long a statement may wait for a lock. */
  lockTimeoutMs: number
  /** How long the client waits for an answer; Postgres cancels the statement a little later. */
  answerTimeoutMs: number
}

const afterClientMs = 5_000
/** The longest that Postgres takes. */
const maxTimeoutMs = 2_147_483_647
/** A client that answers none of three probes is gone. Together less than idleTransactionTimeoutMs is by default. */
const keepAlive = { idleSeconds: 10, intervalSeconds: 5, count: 3 }
/** How long what Postgres has sent may stay unacknowledged. */
const unacknowledgedMs = 30_000
/** How often Postgres looks, while it works on a statement, whether the client is still connected. */
const connectionCheckMs = 10_000

/** Sets the limits of a connection that is ours alone. */
export async function limitSession(client: pg.ClientBase, limits: Limits, answerMs: number): Promise<void> {
  const text = `
    set tcp_keepalives_idle = ${keepAlive.idleSeconds};
    set tcp_keepalives_interval = ${keepAlive.intervalSeconds};
    set tcp_keepalives_count = ${keepAlive.count};
    set tcp_user_timeout = ${unacknowledgedMs};
    ${timeouts('set', limits)}`
  await client.query({ text, query_timeout: answerMs } as pg.QueryConfig)
  const check = { text: `set client_connection_check_interval = ${connectionCheckMs}`, query_timeout: answerMs }
  await client.query(check as pg.QueryConfig).catch((error: unknown) => {
    if ((error as { code?: unknown }).code !== invalidValue) throw error
  })
}

/** What a server on a system without this check answers. */
const invalidValue = '22023'

/** Text that begins a transaction with these limits, on a connection that others have before and after it. */
export function beginLimited(limits: Limits): string {
  return `begin isolation level read committed; ${timeouts('set local', limits)}`
}

function timeouts(set: 'set' | 'set local', limits: Limits): string {
  return `${set} idle_in_transaction_session_timeout = ${limits.idleTransactionTimeoutMs};
    ${set} lock_timeout = ${limits.lockTimeoutMs};
    ${set} statement_timeout = ${Math.min(limits.answerTimeoutMs + afterClientMs, maxTimeoutMs)}`
}
