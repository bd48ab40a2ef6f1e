import { createHash } from 'node:crypto'
import type pg from 'pg'
import { sql, type Sql } from './sql.ts'

/*
 * Statements are prepared: parsed and planned once on every connection of ours, and then only run. A plan that was made
 * while a table was empty must still be right when it holds a million rows, so the planner may not scan tables where
 * there is an index, whatever their size is when it plans.
 *
 * Before Postgres 18 such a scan, where there is no index, is planned at a cost of ten billion. That is far beyond the
 * cost from which on statements are compiled (JIT), and compiling a claim takes seconds: so nothing is compiled.
 */

const names = new Map<string, string>()

/** The same name for the same text, short enough for Postgres. */
export function statementName(text: string): string {
  let name = names.get(text)
  if (name === undefined) {
    name = `fencepost-${createHash('sha256').update(text).digest('base64url').slice(0, 32)}`
    names.set(text, name)
  }
  return name
}

/** Sets up a connection of ours. */
export async function planOnce(client: pg.ClientBase, answerTimeoutMs: number): Promise<void> {
  const text = 'set plan_cache_mode = force_generic_plan; set enable_seqscan = off; set jit = off'
  await client.query({ text, query_timeout: answerTimeoutMs } as pg.QueryConfig)
}

/**
 * Columns to select where the rest of a transaction belongs to somebody else: he gets the planner as it usually is, and
 * statements that take as long as they take. The limit for a transaction that waits for its client stays, and nothing is
 * compiled.
 */
export const planAsUsual: Sql = sql`
  set_config('plan_cache_mode', 'auto', true), set_config('enable_seqscan', 'on', true),
  set_config('statement_timeout', '0', true), set_config('lock_timeout', '0', true)`
