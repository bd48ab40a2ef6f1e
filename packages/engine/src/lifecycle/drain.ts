import type { Db } from '../database/database.ts'
import { sql } from '../database/sql.ts'

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

export async function getDrain(db: Db): Promise<Drain> {
  const { t } = db
  const [row] = await db.query<{ value: DrainLevel; updated_at: string; updated_by: string | null }>(
    'drain.get',
    sql`select value, updated_at, updated_by from ${t.settings} where key = 'drain'`,
  )
  return { level: row?.value ?? 'off', updatedAt: row?.updated_at, updatedBy: row?.updated_by ?? undefined }
}
