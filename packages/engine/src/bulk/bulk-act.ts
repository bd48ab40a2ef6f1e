import type { Db } from '../database/database.ts'
import { raw, sql } from '../database/sql.ts'
import type { JobFilter } from '../read/filter.ts'
import type { JobStatus } from '../read/job.ts'

/** What is done to every job that fits a filter. */
export type Act = 'run_again' | 'cancel' | 'delete'

/** An act on all jobs of a filter, and how far it has come. */
export interface BulkAct {
  bulkActId: string
  act: Act
  filter: JobFilter
  /** `previewed` until it is started; `stopped` by an operator, or because more jobs fit than were previewed. */
  state: 'previewed' | 'running' | 'completed' | 'stopped'
  /** How many jobs there were to act on when it was previewed. */
  previewedCount: number
  previewedAt: string
  submittedBy: string | undefined
  /** How many jobs have been acted on. */
  done: number
  /** How many could not be: another job holds their lock or dedup key, or they have changed meanwhile. */
  refused: number
  startedAt: string | undefined
  endedAt: string | undefined
}

/** The jobs that an act can be done to; a filter of its own is within these. */
export const statusesOfAct: Record<Act, readonly JobStatus[]> = {
  run_again: ['failed', 'cancelled'],
  cancel: ['pending', 'running'],
  delete: ['completed', 'failed', 'cancelled'],
}

export interface BulkActRow {
  bulk_act_id: string
  act: Act
  filter: JobFilter
  before_job_id: string
  previewed_count: bigint
  previewed_at: string
  state: BulkAct['state']
  submitted_by: string | null
  cursor_job_id: string | null
  done: bigint
  refused: bigint
  started_at: string | null
  ended_at: string | null
}

export const bulkActColumns = raw(`bulk_act_id, act, filter, before_job_id, previewed_count, previewed_at, state,
  submitted_by, cursor_job_id, done, refused, started_at, ended_at`)

export async function getBulkAct(db: Db, bulkActId: string): Promise<BulkAct | undefined> {
  const rows = await db.query<BulkActRow>(
    'bulk.get',
    sql`select ${bulkActColumns} from ${db.t.bulkActs} where bulk_act_id = ${bulkActId}`,
  )
  return rows.map(bulkActFromRow)[0]
}

/** The acts that were started, the latest first. */
export async function listBulkActs(db: Db): Promise<BulkAct[]> {
  const rows = await db.query<BulkActRow>(
    'bulk.list',
    sql`select ${bulkActColumns} from ${db.t.bulkActs} where state <> 'previewed' order by started_at desc limit 100`,
  )
  return rows.map(bulkActFromRow)
}

export function bulkActFromRow(row: BulkActRow): BulkAct {
  return {
    bulkActId: row.bulk_act_id,
    act: row.act,
    filter: row.filter,
    state: row.state,
    previewedCount: Number(row.previewed_count),
    previewedAt: row.previewed_at,
    submittedBy: row.submitted_by ?? undefined,
    done: Number(row.done),
    refused: Number(row.refused),
    startedAt: row.started_at ?? undefined,
    endedAt: row.ended_at ?? undefined,
  }
}
