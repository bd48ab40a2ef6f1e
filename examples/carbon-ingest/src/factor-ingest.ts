import { createReadStream } from 'node:fs'
import { Readable } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import { operation, PermanentError } from '@fencepost/engine'
import { z } from 'zod'
import { copyCsv } from './copy-csv.ts'
import { emissionRecalc, typesOf } from './emission-recalc.ts'
import { carbonQueue, leaseMs } from './queue.ts'
import { slotKey } from './slot.ts'
import { holdYear, year } from './year.ts'

/** `csv` takes a file, `api` the address of a service that answers with the same CSV. */
const payload = z.object({ year, method: z.enum(['csv', 'api']), source: z.string() })

const slotOf = (one: z.infer<typeof payload>) => slotKey({ target: 'factors', method: one.method, year: one.year })

/** Replaces the emission factors of a year, and has everything recalculated that hangs on them. */
export const factorIngest = operation('factor_ingest', {
  payload,
  queue: carbonQueue,
  leaseMs,
  slot: slotOf,
  dedup: (one) => `factor_ingest ${slotOf(one)}`,
  async run({ payload: { year: ofYear, method, source }, attempt, signal }) {
    // Before the transaction: whoever is waited for must not keep one open.
    const csv = method === 'csv' ? await buffer(createReadStream(source)) : await download(source, signal)
    return attempt.complete(async (client) => {
      await holdYear(client, ofYear, 'for update')
      await client.query(incomingTable)
      const factors = await copyCsv(client, 'pg_temp.incoming', Readable.from([csv]), { signal })
      await client.query('delete from carbon.factors where year = $1', [ofYear])
      await client.query('insert into carbon.factors select $1, incoming.* from pg_temp.incoming', [ofYear])
      const types = await typesOf(client, ofYear)
      for (const type of types.values()) attempt.chain(emissionRecalc, { year: ofYear, ...type })
      return { factors, recalculations: types.size }
    })
  },
})

const incomingTable = `
  create temporary table incoming (module text, data_type text, category text, kg_per_unit numeric(12, 6)) on commit drop`

async function download(address: string, signal: AbortSignal): Promise<Buffer> {
  const answer = await fetch(address, { signal })
  if (answer.ok) return Buffer.from(await answer.arrayBuffer())
  const message = `${address} answered ${answer.status} ${answer.statusText}`
  throw answer.status < 500 ? new PermanentError(`${message}; correct the address.`) : new Error(message)
}
