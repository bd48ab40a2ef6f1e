import type pg from 'pg'
import { computeEmbeddings } from './compute-embeddings.ts'
import { embedBatch } from './embed-batch.ts'
import { insertProteins } from './insert-proteins.ts'
import { predictBatch } from './predict-batch.ts'
import { predictGoTerms } from './predict-go-terms.ts'
import { storeEmbeddings } from './store-embeddings.ts'

export interface AnnotationOptions {
  /** How long a compute_embeddings that finds the GPU taken waits before it looks again. */
  gpuRetrySeconds?: number
  /** How soon a batch whose worker died is taken from it. Short, so that the example need not be waited for. */
  leaseMs?: number
}

export type AnnotationOperations = ReturnType<typeof annotationOperations>

/** The operations, wired to each other and to the database. */
export function annotationOperations(pool: pg.Pool, { gpuRetrySeconds = 1, leaseMs = 3_000 }: AnnotationOptions = {}) {
  const store = storeEmbeddings(leaseMs)
  const embed = embedBatch(pool, store, leaseMs)
  const predict = predictBatch(pool, leaseMs)
  return {
    insertProteins,
    computeEmbeddings: computeEmbeddings(pool, embed, gpuRetrySeconds),
    embedBatch: embed,
    storeEmbeddings: store,
    predictGoTerms: predictGoTerms(pool, predict),
    predictBatch: predict,
  }
}
