import { operation, PermanentError, type TransactionClient } from '@fencepost/engine'
import { z } from 'zod'
import { aggregation } from './aggregation.ts'
import { carbonQueue, leaseMs } from './queue.ts'
import { slotKey } from './slot.ts'
import { holdYear, year } from './year.ts'

const payload = z.object({ year, module: z.string(), dataType: z.string() })

type Recalculation = z.infer<typeof payload>
type DataType = Pick<Recalculation, 'module' | 'dataType'>

const slotOf = (one: Recalculation) => slotKey({ ...one, target: 'emissions', method: 'computed' })

/** Computes the emissions of all entries of one data type anew. */
export const emissionRecalc = operation('emission_recalc', {
  payload,
  queue: carbonQueue,
  leaseMs,
  slot: slotOf,
  dedup: (one) => `emission_recalc ${slotOf(one)}`,
  run: ({ payload: wanted, attempt }) =>
    attempt.complete(async (client) => {
      await holdYear(client, wanted.year, 'for share')
      if (!(await hasFactors(client, wanted.year))) return { skipped: `no factors for ${wanted.year} yet` }
      await refuseMissingFactors(client, wanted)
      const entries = await computeEmissions(client, wanted)
      attempt.chain(aggregation, { year: wanted.year })
      return { entries }
    }),
})

async function computeEmissions(client: TransactionClient, wanted: Recalculation): Promise<number | null> {
  const values = [wanted.year, wanted.module, wanted.dataType]
  await client.query('delete from carbon.emissions where year = $1 and module = $2 and data_type = $3', values)
  const { rowCount } = await client.query(
    `insert into carbon.emissions (year, entry_id, org_unit, module, data_type, kg)
     select entry.year, entry_id, org_unit, module, data_type, quantity * kg_per_unit
       from carbon.entries entry join carbon.factors using (year, module, data_type, category)
      where entry.year = $1 and module = $2 and data_type = $3`,
    values,
  )
  return rowCount
}

/** The data types of which a year has entries, or emissions of entries that are gone. */
export async function typesOf(client: TransactionClient, ofYear: number): Promise<Map<string, DataType>> {
  const { rows } = await client.query<{ module: string; data_type: string }>(
    `select module, data_type from carbon.entries where year = $1
      union select module, data_type from carbon.emissions where year = $1
      order by module, data_type`,
    [ofYear],
  )
  return new Map(rows.map((row) => [`${row.module}/${row.data_type}`, { module: row.module, dataType: row.data_type }]))
}

async function hasFactors(client: TransactionClient, ofYear: number): Promise<boolean> {
  const { rows } = await client.query('select from carbon.factors where year = $1 limit 1', [ofYear])
  return rows.length > 0
}

async function refuseMissingFactors(client: TransactionClient, wanted: Recalculation): Promise<void> {
  const { rows } = await client.query<{ category: string }>(
    `select distinct category from carbon.entries entry
      where year = $1 and module = $2 and data_type = $3
        and not exists (select from carbon.factors factor
                         where (factor.year, factor.module, factor.data_type, factor.category)
                             = (entry.year, entry.module, entry.data_type, entry.category))
      order by category`,
    [wanted.year, wanted.module, wanted.dataType],
  )
  if (rows.length === 0) return
  throw new PermanentError(
    `No factor for ${wanted.module}/${wanted.dataType} in ${wanted.year}: ${rows.map((row) => row.category).join(', ')}. ` +
      'Ingest factors that have them; everything is then recalculated.',
  )
}
