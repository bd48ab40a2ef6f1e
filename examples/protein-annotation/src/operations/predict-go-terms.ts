import { child, defer, operation, type Operation } from '@fencepost/engine'
import type pg from 'pg'
import { z } from 'zod'
import { modelName } from '../sequences/embedding.ts'
import { inBatches } from './batches.ts'
import { model } from './payloads.ts'
import type { PredictBatch } from './predict-batch.ts'

/** A coordinator like compute_embeddings: the proteins of which nothing is known, in batches. It needs no GPU. */
export function predictGoTerms(pool: pg.Pool, predictBatch: Operation<PredictBatch>) {
  return operation('predict_go_terms', {
    payload: z.strictObject({
      dataset: z.string(),
      model: model.prefault({}),
      batch_size: z.int().min(1).default(15),
    }),
    async run({ payload: { dataset, model, batch_size } }) {
      const { rows } = await pool.query<{ accession: string }>(
        `select accession from annotation.proteins where dataset = $1 and go_terms = '{}' order by accession`,
        [dataset],
      )
      const batches = inBatches(rows, batch_size).map((some, nth) =>
        child(predictBatch, { dataset, model, batch: nth + 1, accessions: some.map(({ accession }) => accession) }),
      )
      return defer(batches, { result: { model: modelName(model), proteins: rows.length } })
    },
  })
}
