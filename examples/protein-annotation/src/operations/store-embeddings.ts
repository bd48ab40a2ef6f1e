import { setTimeout as pause } from 'node:timers/promises'
import { operation } from '@fencepost/engine'
import { z } from 'zod'
import { decodeEmbedding, modelName } from '../sequences/embedding.ts'
import { model, simulate } from './payloads.ts'

const payload = z.strictObject({
  dataset: z.string(),
  model,
  batch: z.int().min(1),
  embeddings: z.array(z.strictObject({ accession: z.string(), vector: z.base64() })).min(1),
  simulate,
})
export type StoreEmbeddings = z.input<typeof payload>

/** The write stage: the rows of a batch and the end of this job are one commit, so they are there once or not at all. */
export function storeEmbeddings(leaseMs: number) {
  return operation('store_embeddings', {
    payload,
    leaseMs,
    retry: { firstDelayMs: 200, maxDelayMs: 2_000 },
    async run({ payload: { dataset, model, batch, embeddings, simulate }, attempt, signal }) {
      const rows = embeddings.map(({ accession, vector }) => ({ accession, vector: [...decodeEmbedding(vector)] }))
      return attempt.complete(async (client) => {
        await client.query(
          `insert into annotation.embeddings (dataset, accession, model, vector, job_id)
           select $1, accession, $2, vector, $3
             from jsonb_to_recordset($4::jsonb) as row (accession text, vector real[])`,
          [dataset, modelName(model), attempt.jobId, JSON.stringify(rows)],
        )
        await pause(simulate.write_ms, undefined, { signal })
        if (simulate.write_errors && batch % 2 === 0 && attempt.claimed.attempts === 1) {
          throw new Error('the connection was reset before the commit')
        }
        return { stored: rows.length }
      })
    },
  })
}
