import type { Db } from '../database/database.ts'
import { sql } from '../database/sql.ts'
import { idsStatement, isScanning, scanRows, type JobFilter, type Stretch } from './filter.ts'

/**
 * Up to which job to look, so that no more than `rows` of them are looked at; undefined where all of them may be. What an
 * index finds is not limited.
 */
export async function scanEnd(
  db: Db,
  filter: JobFilter,
  stretch: Stretch,
  rows = scanRows,
): Promise<string | undefined> {
  if (!isScanning(filter)) return undefined
  const [last] = await db.query<{ job_id: string }>(
    'list.scan',
    sql`select job_id from ${idsStatement(db, filter, { stretch, limit: 1, offset: rows - 1, scanned: false })} last`,
  )
  return last?.job_id
}
