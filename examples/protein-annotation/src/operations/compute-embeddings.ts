import { child, defer, operation, RetryLater, type Attempt, type Operation } from '@fencepost/engine'
import type pg from 'pg'
import { z } from 'zod'
import { modelName, type Model } from '../sequences/embedding.ts'
import { inBatches } from './batches.ts'
import type { EmbedBatch } from './embed-batch.ts'
import { failWhen, model, simulate } from './payloads.ts'

/** The coordinator: takes the GPU, splits what is to be embedded into batches, and waits for them as its children. */
export function computeEmbeddings(pool: pg.Pool, embedBatch: Operation<EmbedBatch>, gpuRetrySeconds: number) {
  return operation('compute_embeddings', {
    payload: z.strictObject({
      dataset: z.string(),
      model: model.prefault({}),
      batch_size: z.int().min(1).default(20),
      fail_when: failWhen,
      simulate: simulate.prefault({}),
    }),
    async run({ payload, attempt }) {
      const gpu = await takeGpu(attempt)
      if (!gpu.taken) throw new RetryLater(`the GPU is taken by job ${gpu.holder}`, gpuRetrySeconds)
      const accessions = await withoutEmbedding(pool, payload.dataset, payload.model)
      const batches = inBatches(accessions, payload.batch_size)
      await attempt.emit('compute_embeddings.planned', {
        message: `${accessions.length} proteins in ${batches.length} batches`,
        fields: { proteins: accessions.length, batches: batches.length },
      })
      const { dataset, model, simulate } = payload
      return defer(
        batches.map((some, nth) => child(embedBatch, { dataset, model, batch: nth + 1, accessions: some, simulate })),
        { failWhen: payload.fail_when, result: { model: modelName(model), proteins: accessions.length } },
      )
    },
  })
}

/**
 * Takes the GPU for this job, unless an unfinished one has it. Nobody has to give it back: whether its holder is still
 * at it is read off the holder's own row, however that one ends.
 */
async function takeGpu(attempt: Attempt): Promise<{ taken: true } | { taken: false; holder: string }> {
  return attempt.transaction(async (client) => {
    const { rowCount } = await client.query(
      `insert into annotation.devices as gpu (device, job_id) values ('gpu', $1)
           on conflict (device) do update set job_id = excluded.job_id
        where gpu.job_id = excluded.job_id
           or not exists (select from fencepost.jobs holder
                           where holder.job_id = gpu.job_id and holder.status in ('pending', 'running'))`,
      [attempt.jobId],
    )
    if (rowCount === 1) return { taken: true }
    const { rows } = await client.query<{ job_id: string }>('select job_id from annotation.devices')
    return { taken: false, holder: rows[0]?.job_id.replaceAll('-', '') ?? 'nobody' }
  })
}

async function withoutEmbedding(pool: pg.Pool, dataset: string, wanted: Model): Promise<string[]> {
  const { rows } = await pool.query<{ accession: string }>(
    `select accession from annotation.proteins protein
      where dataset = $1
        and not exists (select from annotation.embeddings done
                         where done.dataset = $1 and done.accession = protein.accession and done.model = $2)
      order by accession`,
    [dataset, modelName(wanted)],
  )
  return rows.map(({ accession }) => accession)
}
