import { told } from '../attempt/told.ts'
import type { Context } from '../context.ts'
import type { Db } from '../database/database.ts'
import { sql } from '../database/sql.ts'
import { cancelTreesIn } from '../lifecycle/cancel.ts'
import { deleteJobs } from '../lifecycle/delete.ts'
import { runAgainJobs } from '../lifecycle/run-again.ts'
import { bulkActColumns, type BulkActRow } from './bulk-act.ts'
import { matchingJobs } from './matching.ts'

/*
 * One batch of an act: its row is locked, the next jobs are acted on by the statements of the single verbs, and how far it
 * has come is written, all in one transaction. So any process can do any batch, two never do the same one, and a process
 * that dies leaves the act where it was. Lock order: bulk_acts, then as in the verb.
 */

const batch = 100
/** A set may grow by so much, by the time the act is at its end, before the act stops. */
export const growth = 1.1

/** What came of a batch. `waiting`: another process is at it, it has ended, or drain refuses what it would submit. */
export type Advanced = 'more' | 'ended' | 'waiting'

interface Acted {
  done: number
  refused: number
  /** To be called when it is committed. */
  tell: () => Promise<void>
}

class Drained extends Error {}

export async function advance(context: Context, bulkActId: string): Promise<Advanced> {
  let tell: Acted['tell'] | undefined
  try {
    const advanced = await context.database.transaction('bulk', async (db): Promise<Advanced> => {
      const [row] = await db.query<BulkActRow>(
        'bulk.lock',
        sql`select ${bulkActColumns} from ${db.t.bulkActs}
             where bulk_act_id = ${bulkActId} and state = 'running' for update skip locked`,
      )
      if (row === undefined) return 'waiting'
      const from = { after: row.cursor_job_id ?? undefined, limit: batch }
      const { jobIds, next } = await matchingJobs(db, { ...row, beforeJobId: row.before_job_id }, from)
      const left = Math.floor(Number(row.previewed_count) * growth) - Number(row.done + row.refused)
      const wanted = jobIds.slice(0, left)
      const acted = await actOn(context, db, row, wanted)
      const state = wanted.length < jobIds.length ? 'stopped' : next === undefined ? 'completed' : 'running'
      await note(db, row, { ...acted, state, cursor: next ?? jobIds.at(-1) })
      tell = acted.tell
      return state === 'running' ? 'more' : 'ended'
    })
    await tell?.()
    return advanced
  } catch (error) {
    if (error instanceof Drained) return 'waiting'
    throw error
  }
}

async function actOn(
  context: Context,
  db: Db,
  { act, submitted_by: submittedBy }: BulkActRow,
  jobIds: readonly string[],
): Promise<Acted> {
  const by = submittedBy ?? undefined
  const { telemetry, wake } = context
  const acted = (done: number, tell: () => Promise<void>): Acted => ({ done, refused: jobIds.length - done, tell })
  switch (act) {
    case 'cancel': {
      const rows = await cancelTreesIn(db, jobIds, by)
      const cancelled = new Set(rows.jobIds)
      return acted(jobIds.filter((jobId) => cancelled.has(jobId)).length, () => told(context, rows))
    }
    case 'delete':
      return acted((await deleteJobs(db, jobIds, by)).length, async () => {})
    case 'run_again': {
      const { answers, submissions, jobIds: made } = await runAgainJobs(db, jobIds, by)
      if (answers.some((answer) => !answer.ranAgain && answer.why === 'drained')) throw new Drained()
      return acted(answers.filter(({ ranAgain }) => ranAgain).length, async () => {
        wake.submitted(submissions, made)
        for (const { operation } of submissions) telemetry.ranAgain(operation)
      })
    }
  }
}

async function note(
  db: Db,
  row: BulkActRow,
  { done, refused, state, cursor }: Acted & { state: string; cursor: string | undefined },
): Promise<void> {
  const { t } = db
  await db.query(
    'bulk.note',
    sql`update ${t.bulkActs}
           set done = done + ${done}::bigint, refused = refused + ${refused}::bigint, state = ${state}::text,
               cursor_job_id = coalesce(${cursor ?? null}::uuid, cursor_job_id),
               ended_at = case when ${state}::text <> 'running' then ${t.now} end
         where bulk_act_id = ${row.bulk_act_id}`,
  )
}
