import { setTimeout as pause } from 'node:timers/promises'
import { child, defer, operation, PermanentError, type Operation } from '@fencepost/engine'
import type pg from 'pg'
import { z } from 'zod'
import { embed, encodeEmbedding, UnreadableSequence, type Model } from '../sequences/embedding.ts'
import { model, simulate } from './payloads.ts'
import type { StoreEmbeddings } from './store-embeddings.ts'

const payload = z.strictObject({
  dataset: z.string(),
  model,
  batch: z.int().min(1),
  accessions: z.array(z.string()).min(1),
  simulate,
})
export type EmbedBatch = z.input<typeof payload>

/** The batch stage: computes the embeddings of its proteins, and hands them on to the write stage. */
export function embedBatch(pool: pg.Pool, storeEmbeddings: Operation<StoreEmbeddings>, leaseMs: number) {
  return operation('embed_batch', {
    payload,
    leaseMs,
    retry: { firstDelayMs: 200, maxDelayMs: 2_000 },
    async run({ payload: { dataset, model, batch, accessions, simulate }, attempt, signal }) {
      const sequences = await sequencesOf(pool, dataset, accessions)
      const embeddings: StoreEmbeddings['embeddings'] = []
      for (const { accession, sequence } of sequences) {
        await pause(simulate.device_ms / sequences.length, undefined, { signal })
        if (simulate.device_errors && batch % 3 === 0 && attempt.claimed.attempts === 1) {
          throw new Error('the device is out of memory')
        }
        embeddings.push({ accession, vector: encodeEmbedding(embedOrRefuse(accession, sequence, model)) })
        if (embeddings.length % 5 === 0) await attempt.progress(embeddings.length, sequences.length)
      }
      // Before batches that have not begun: what is computed should be stored soon.
      const store = child(storeEmbeddings, { dataset, model, batch, embeddings, simulate }, { priority: -1 })
      return defer([store], { result: { embedded: embeddings.length } })
    },
  })
}

function embedOrRefuse(accession: string, sequence: string, model: Model): Float32Array {
  try {
    return embed(sequence, model)
  } catch (error) {
    if (!(error instanceof UnreadableSequence)) throw error
    throw new PermanentError(`${accession} cannot be embedded: ${error.message}`, { cause: error })
  }
}

async function sequencesOf(pool: pg.Pool, dataset: string, accessions: readonly string[]) {
  const { rows } = await pool.query<{ accession: string; sequence: string }>(
    `select accession, sequence from annotation.proteins
      where dataset = $1 and accession = any($2) order by accession`,
    [dataset, accessions],
  )
  return rows
}
