import type { Db } from '../database/database.ts'
import { sql, type Sql } from '../database/sql.ts'
import { pendingOf, type Kind } from './due-jobs.ts'

/** What is refused: nothing, new submissions, or submissions and claims. The sweep goes on in all of them. */
export type DrainLevel = 'off' | 'submissions' | 'all'

export const drainLevels: readonly DrainLevel[] = ['off', 'submissions', 'all']

export interface Drain {
  level: DrainLevel
  updatedAt: string | undefined
  updatedBy: string | undefined
}

/** Sets the level for all processes at once. A claim or submission that has begun may still land. */
export async function setDrain(db: Db, level: DrainLevel, by: string | undefined): Promise<void> {
  const { t } = db
  await db.query(
    'drain',
    sql`insert into ${t.settings} (key, value, updated_at, updated_by) values ('drain', ${level}, ${t.now}, ${by ?? null})
        on conflict (key) do update
           set value = excluded.value, updated_at = excluded.updated_at, updated_by = excluded.updated_by`,
  )
}

/** The queues with pending jobs, due or not. */
export async function pendingQueues(db: Db): Promise<string[]> {
  const { t } = db
  const first = (kind: Kind, beyond: Sql) => sql`
    (select job.queue from ${t.liveJobs} job where ${pendingOf(kind)} and ${beyond} order by job.queue limit 1)`
  const after = sql`job.queue > names.queue`
  const rows = await db.query<{ queue: string }>(
    'drain.queues',
    sql`
    with recursive names (queue) as (
      select least(${first('plain', sql`true`)}, ${first('slotted', sql`true`)})
      union all
      select least(${first('plain', after)}, ${first('slotted', after)}) from names where names.queue is not null
    )
    select queue from names where queue is not null`,
  )
  return rows.map((row) => row.queue)
}

export async function getDrain(db: Db): Promise<Drain> {
  const { t } = db
  const [row] = await db.query<{ value: DrainLevel; updated_at: string; updated_by: string | null }>(
    'drain.get',
    sql`select value, updated_at, updated_by from ${t.settings} where key = 'drain'`,
  )
  return { level: row?.value ?? 'off', updatedAt: row?.updated_at, updatedBy: row?.updated_by ?? undefined }
}
