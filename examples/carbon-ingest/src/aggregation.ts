import { operation, RetryLater, type TransactionClient } from '@fencepost/engine'
import { z } from 'zod'
import { carbonQueue, leaseMs } from './queue.ts'
import { slotKey } from './slot.ts'
import { holdYear, year } from './year.ts'

const payload = z.object({ year })
const lookAgainSeconds = 0.2

/** Writes the carbon report of a year. Every recalculation asks for it; one comes, when they have all ended. */
export const aggregation = operation('aggregation', {
  payload,
  queue: carbonQueue,
  leaseMs,
  slot: (one) => slotKey({ target: 'report', method: 'computed', year: one.year }),
  dedup: (one) => `aggregation ${one.year}`,
  run: ({ payload: { year: ofYear }, attempt }) =>
    attempt.complete(async (client) => {
      await holdYear(client, ofYear, 'for update')
      const unfinished = await unfinishedRecalculations(client, ofYear)
      if (unfinished > 0) throw new RetryLater(`${unfinished} recalculations are not done`, lookAgainSeconds)
      return writeReport(client, ofYear, attempt.jobId)
    }),
})

async function unfinishedRecalculations(client: TransactionClient, ofYear: number): Promise<number> {
  const { rows } = await client.query<{ count: string }>(
    `select count(*) from fencepost.jobs
      where operation = 'emission_recalc' and status in ('pending', 'running') and payload -> 'year' = to_jsonb($1::int)`,
    [ofYear],
  )
  return Number(rows[0]?.count)
}

async function writeReport(client: TransactionClient, ofYear: number, jobId: string) {
  const { rows } = await client.query<{ report_id: string; entries: string; kg: string }>(
    `insert into carbon.reports (year, job_id, entries, kg)
     select $1, $2, count(*), coalesce(sum(kg), 0) from carbon.emissions where year = $1
     returning report_id, entries, kg`,
    [ofYear, jobId],
  )
  const [report] = rows
  await client.query(
    `insert into carbon.report_lines
     select $2, org_unit, module, data_type, count(*), sum(kg) from carbon.emissions where year = $1
      group by org_unit, module, data_type`,
    [ofYear, report?.report_id],
  )
  return { report: Number(report?.report_id), entries: Number(report?.entries), kg: report?.kg ?? '0' }
}
