import type { Db } from '../database/database.ts'
import type { Relations } from '../database/relations.ts'
import { sql, type Sql } from '../database/sql.ts'
import { pendingQueues } from './drain.ts'

/** A queue, and whether it is paused: then nothing is claimed from it, while submissions and running jobs go on. */
export interface Queue {
  queue: string
  /** Undefined while it is not paused. */
  pausedAt: string | undefined
  pausedBy: string | undefined
}

interface PausedRow {
  queue: string
  paused_at: string
  paused_by: string | null
}

/** True while claims from this queue are allowed. Asked once in a statement that gives one queue. */
export function isOpen(t: Relations, queue: unknown): Sql {
  return sql`not exists (select from ${t.pausedQueues} paused where paused.queue = ${queue})`
}

/** True for a row whose queue is not paused. */
export function ofOpenQueue(t: Relations, queue: Sql): Sql {
  return sql`${queue} <> all(array(select paused.queue from ${t.pausedQueues} paused))`
}

/** Pauses it for all processes at once, and says whether it was not paused before. A claim that has begun may still land. */
export async function pauseQueue(db: Db, queue: string, by: string | undefined): Promise<boolean> {
  const { t } = db
  const rows = await db.query(
    'queues.pause',
    sql`insert into ${t.pausedQueues} (queue, paused_at, paused_by) values (${queue}, ${t.now}, ${by ?? null})
        on conflict (queue) do nothing
        returning queue`,
  )
  return rows.length > 0
}

/** Lets claims go on, and says whether it was paused. */
export async function resumeQueue(db: Db, queue: string): Promise<boolean> {
  const { t } = db
  const rows = await db.query(
    'queues.resume',
    sql`delete from ${t.pausedQueues} where queue = ${queue} returning queue`,
  )
  return rows.length > 0
}

/** The queues that are known: those given, those with pending jobs, those that workers claim from, and those paused. */
export async function listQueues(db: Db, given: readonly string[]): Promise<Queue[]> {
  const { t } = db
  const paused = await db.query<PausedRow>('queues', sql`select queue, paused_at, paused_by from ${t.pausedQueues}`)
  const served = await db.query<{ queue: string }>(
    'queues.served',
    sql`select distinct unnest(queues) as queue from ${t.workers}`,
  )
  const pausedBy = new Map(paused.map((row) => [row.queue, row]))
  const names = [...given, ...(await pendingQueues(db)), ...served.map(({ queue }) => queue), ...pausedBy.keys()]
  return [...new Set(names)].sort().map((queue) => queueOf(queue, pausedBy.get(queue)))
}

/** One queue, whether or not anything is known of it. */
export async function getQueue(db: Db, queue: string): Promise<Queue> {
  const { t } = db
  const [row] = await db.query<PausedRow>(
    'queues.get',
    sql`select queue, paused_at, paused_by from ${t.pausedQueues} where queue = ${queue}`,
  )
  return queueOf(queue, row)
}

function queueOf(queue: string, row: PausedRow | undefined): Queue {
  return { queue, pausedAt: row?.paused_at, pausedBy: row?.paused_by ?? undefined }
}
