import { createReadStream } from 'node:fs'
import { stat } from 'node:fs/promises'
import { basename } from 'node:path'
import { operation, PermanentError, type TransactionClient } from '@fencepost/engine'
import { z } from 'zod'
import { copyCsv } from './copy-csv.ts'
import { emissionRecalc, typesOf } from './emission-recalc.ts'
import { carbonQueue, leaseMs } from './queue.ts'
import { slotKey } from './slot.ts'
import { holdYear, year } from './year.ts'

const payload = z.object({ year, file: z.string(), rows: z.number().int().positive().optional() })

const slotOf = (one: { year: number }) => slotKey({ target: 'entries', method: 'csv', year: one.year })

/** Replaces the entries of a year by those of a file, and has everything recalculated that hangs on them. */
export const csvIngest = operation('csv_ingest', {
  payload,
  queue: carbonQueue,
  leaseMs,
  slot: slotOf,
  dedup: (one) => `csv_ingest ${slotOf(one)} ${one.file}`,
  async run({ payload: { year: ofYear, file, rows: expected }, attempt, signal }) {
    if (!(await isFile(file))) throw new PermanentError(`There is no file ${file} to ingest.`)
    await attempt.progress(0, expected) // an attempt before this one may have come further
    return attempt.complete(async (client) => {
      await client.query(incomingTable)
      const rows = await copyCsv(client, 'pg_temp.incoming', createReadStream(file), {
        signal,
        onLines: (lines) => attempt.progress(lines, expected),
      })
      await attempt.progress(rows, rows)
      await refuseOtherYears(client, ofYear, file)
      await holdYear(client, ofYear, 'for update')
      const before = await typesOf(client, ofYear)
      await client.query('delete from carbon.entries where year = $1', [ofYear])
      await client.query('insert into carbon.entries select $1, incoming.* from pg_temp.incoming', [ofYear])
      const types = new Map([...before, ...(await typesOf(client, ofYear))])
      for (const type of types.values()) attempt.chain(emissionRecalc, { year: ofYear, ...type })
      return { rows, recalculations: types.size }
    })
  },
})

const incomingTable = `
  create temporary table incoming (
    entry_id integer, day date, org_unit text, module text, data_type text, category text, quantity numeric(12, 3)
  ) on commit drop`

async function isFile(path: string): Promise<boolean> {
  return stat(path).then(
    (found) => found.isFile(),
    () => false,
  )
}

async function refuseOtherYears(client: TransactionClient, ofYear: number, file: string): Promise<void> {
  const { rows } = await client.query<{ entry_id: number; day: string }>(
    `select entry_id, day::text from pg_temp.incoming where extract(year from day) <> $1 order by entry_id limit 1`,
    [ofYear],
  )
  const [first] = rows
  if (first === undefined) return
  throw new PermanentError(
    `${basename(file)} is not about ${ofYear} alone: entry ${first.entry_id} is of ${first.day}. Correct it and submit it again.`,
  )
}
