import type { Engine, Job, Operation, SubmitOptions } from '@fencepost/engine'
import type pg from 'pg'
import type { AnnotationOperations } from '../operations/operations.ts'
import { modelName, type Model } from '../sequences/embedding.ts'
import { data } from '../sequences/data.ts'
import type { Family, View } from '../show/view.ts'
import type { Workers } from '../workers.ts'

/** What a scene plays on. */
export interface Stage {
  engine: Engine
  pool: pg.Pool
  operations: AnnotationOperations
  workers: Workers
  view: View
  /** Fires when the show is to stop. */
  signal: AbortSignal
}

/** Something that should hold at the end of a scene, and whether it does. */
export interface Finding {
  holds: boolean
  text: string
}

export interface Scene {
  name: string
  title: string
  about: string
  play(stage: Stage): Promise<Finding[]>
}

/** Submits a job that is to be accepted. */
export async function start<Input>(
  { engine }: Stage,
  operation: Operation<Input>,
  payload: Input,
  options: SubmitOptions = {},
): Promise<string> {
  const answer = await engine.submit(operation, payload, options)
  if (!answer.submitted) throw new Error(`${operation.name} was not accepted: ${answer.why}.`)
  return answer.jobId
}

/** Submits a job and shows it until it has ended. */
export async function play<Input>(stage: Stage, operation: Operation<Input>, payload: Input): Promise<Family> {
  const jobId = await start(stage, operation, payload)
  const [family] = await stage.view.watch([jobId], stage.signal)
  return family as Family
}

/** Has the sample in the database; a scene that is played alone reads it first. */
export async function needSample(stage: Stage): Promise<void> {
  const { rows } = await stage.pool.query(`select from annotation.proteins where dataset = 'sample' limit 1`)
  if (rows.length === 0) await play(stage, stage.operations.insertProteins, { dataset: 'sample', file: data.sample })
}

/** How many proteins of a dataset have how many embeddings: as many as proteins, each once, when all went well. */
export async function countStored(pool: pg.Pool, dataset: string, model: Model) {
  const { rows } = await pool.query<{ proteins: number; embedded: number; rows: number }>(
    `select (select count(*)::integer from annotation.proteins where dataset = $1) as proteins,
            count(distinct accession)::integer as embedded, count(*)::integer as rows
       from annotation.embeddings where dataset = $1 and model = $2`,
    [dataset, modelName(model)],
  )
  return rows[0] ?? { proteins: 0, embedded: 0, rows: 0 }
}

/** That every protein has one embedding of this model, stored by a job that has completed. */
export async function storedOnce(stage: Stage, { descendants }: Family, model: Model): Promise<Finding> {
  const stored = await countStored(stage.pool, 'sample', model)
  const { rows } = await stage.pool.query<{ job_id: string }>(
    `select distinct job_id from annotation.embeddings where dataset = 'sample' and model = $1`,
    [modelName(model)],
  )
  const writers = new Set(ofOperation(descendants, 'store_embeddings', 'completed').map(({ jobId }) => jobId))
  const byCompleted = rows.length === writers.size && rows.every(({ job_id }) => writers.has(job_id))
  return {
    holds: stored.rows === stored.proteins && stored.embedded === stored.proteins && byCompleted,
    text: `${stored.proteins} proteins have ${stored.rows} embeddings, each stored once, by ${writers.size} writes`,
  }
}

export function ofOperation(jobs: readonly Job[], operation: string, status?: Job['status']): Job[] {
  return jobs.filter((job) => job.operation === operation && (status === undefined || job.status === status))
}
