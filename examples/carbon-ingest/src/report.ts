import type { Pool } from 'pg'
import { scaled, type Line } from './independent.ts'

export interface Report {
  reportId: number
  jobId: string
  entries: number
  micrograms: bigint
  lines: Line[]
}

/** The reports of a year, the latest first. */
export async function readReports(pool: Pool, year: number): Promise<Report[]> {
  const reports = await pool.query<{ report_id: string; job_id: string; entries: string; kg: string }>(
    'select report_id, job_id, entries, kg from carbon.reports where year = $1 order by report_id desc',
    [year],
  )
  return Promise.all(
    reports.rows.map(async ({ report_id, job_id, entries, kg }) => ({
      reportId: Number(report_id),
      jobId: job_id.replaceAll('-', ''),
      entries: Number(entries),
      micrograms: scaled(kg, 9),
      lines: await readLines(pool, report_id),
    })),
  )
}

async function readLines(pool: Pool, reportId: string): Promise<Line[]> {
  const { rows } = await pool.query<{
    org_unit: string
    module: string
    data_type: string
    entries: string
    kg: string
  }>(
    `select org_unit, module, data_type, entries, kg from carbon.report_lines where report_id = $1
      order by (org_unit || '/' || module || '/' || data_type) collate "C"`,
    [reportId],
  )
  return rows.map((row) => ({
    orgUnit: row.org_unit,
    module: row.module,
    dataType: row.data_type,
    entries: Number(row.entries),
    micrograms: scaled(row.kg, 9),
  }))
}
