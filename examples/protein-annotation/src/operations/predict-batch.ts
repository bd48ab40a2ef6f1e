import { operation } from '@fencepost/engine'
import type pg from 'pg'
import { z } from 'zod'
import { modelName, type Model } from '../sequences/embedding.ts'
import { predictTerms, type Annotated } from '../sequences/neighbours.ts'
import { model } from './payloads.ts'

const payload = z.strictObject({
  dataset: z.string(),
  model,
  batch: z.int().min(1),
  accessions: z.array(z.string()).min(1),
})
export type PredictBatch = z.input<typeof payload>

/** Predicts terms from the nearest neighbours; its result and its rows name the neighbours as evidence. */
export function predictBatch(pool: pg.Pool, leaseMs: number) {
  return operation('predict_batch', {
    payload,
    leaseMs,
    async run({ payload: { dataset, model, accessions }, attempt, signal }) {
      const proteins = await embedded(pool, dataset, model)
      const known = proteins.filter(({ goTerms }) => goTerms.length > 0)
      const queries = proteins.filter(({ accession }) => accessions.includes(accession))
      const predictions: { accession: string; terms: ReturnType<typeof predictTerms> }[] = []
      for (const { accession, embedding } of queries) {
        signal.throwIfAborted()
        predictions.push({ accession, terms: predictTerms(embedding, known) })
        if (predictions.length % 5 === 0) await attempt.progress(predictions.length, queries.length)
      }
      const rows = predictions.flatMap(({ accession, terms }) => terms.map((term) => ({ accession, ...term })))
      return attempt.complete(async (client) => {
        await client.query(
          `insert into annotation.predictions (dataset, accession, model, go_term, score, evidence)
           select $1, accession, $2, "goTerm", score, evidence
             from jsonb_to_recordset($3::jsonb) as row (accession text, "goTerm" text, score real, evidence jsonb)`,
          [dataset, modelName(model), JSON.stringify(rows)],
        )
        return { predictions }
      })
    },
  })
}

async function embedded(pool: pg.Pool, dataset: string, wanted: Model): Promise<Annotated[]> {
  const { rows } = await pool.query<{ accession: string; go_terms: string[]; vector: number[] }>(
    `select accession, go_terms, vector from annotation.embeddings join annotation.proteins using (dataset, accession)
      where dataset = $1 and model = $2 order by accession`,
    [dataset, modelName(wanted)],
  )
  return rows.map(({ accession, go_terms, vector }) => ({
    accession,
    goTerms: go_terms,
    embedding: Float32Array.from(vector),
  }))
}
