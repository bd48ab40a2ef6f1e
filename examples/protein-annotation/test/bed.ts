import { openEngine, type Engine, type Job, type Operation } from '@fencepost/engine'
import type pg from 'pg'
import { afterAll, beforeAll, expect, vi } from 'vitest'
import { createTestDatabase, type TestDatabase } from '../../../packages/engine/test/database.ts'
import { createTables, openPool } from '../src/database.ts'
import { annotationOperations, type AnnotationOperations } from '../src/operations/operations.ts'
import { data } from '../src/sequences/data.ts'

/** The example on a database of the test file's own, without a worker. */
export interface Bed {
  url: string
  pool: pg.Pool
  engine: Engine
  operations: AnnotationOperations
  submit<Input>(operation: Operation<Input>, payload: Input): Promise<string>
  /** The job when it is as it should be. */
  until(jobId: string, expected: object): Promise<Job>
  /** The job when it has ended, in whatever way. */
  ended(jobId: string): Promise<Job>
  descendants(jobId: string, operation: string): Promise<Job[]>
  /** The sample, in a dataset of its own, read in a test that is not about reading it. */
  readSample(dataset: string, file?: string): Promise<void>
  /** Works in this process until the answer is called. */
  work(concurrency?: number): () => Promise<void>
}

const timeout = 60_000

/** To be called once in a test file. */
export function annotationBed(): Bed {
  let database: TestDatabase
  const bed = {} as Bed
  const stops: (() => Promise<void>)[] = []
  beforeAll(async () => {
    database = await createTestDatabase()
    const pool = openPool(database.url)
    await createTables(pool)
    // An embedding that is stored twice is to be seen, not refused.
    await pool.query('alter table annotation.embeddings drop constraint embeddings_pkey')
    const operations = annotationOperations(pool, { gpuRetrySeconds: 0.2 })
    const engine = await openEngine({
      database: database.url,
      migrate: false,
      operations: Object.values(operations),
    })
    Object.assign(bed, { url: database.url, pool, engine, operations })
  })
  afterAll(async () => {
    for (const stop of stops) await stop()
    await bed.engine.close()
    await bed.pool.end()
    await database.drop()
  })
  bed.submit = async (operation, payload) => {
    const answer = await bed.engine.submit(operation, payload)
    if (!answer.submitted) throw new Error(`not submitted: ${JSON.stringify(answer)}`)
    return answer.jobId
  }
  bed.until = async (jobId, expected) => {
    const look = async () => {
      const job = await bed.engine.get(jobId)
      expect(job).toMatchObject(expected)
      return job as Job
    }
    return vi.waitFor(look, { timeout })
  }
  bed.ended = (jobId) => bed.until(jobId, { completedAt: expect.any(String) })
  bed.descendants = async (jobId, operation) =>
    bed.engine.list({ ancestorJobId: jobId, operation, limit: 1_000 }).then((jobs) => jobs.toReversed())
  bed.readSample = async (dataset, file = data.sample) => {
    const jobId = await bed.submit(bed.operations.insertProteins, { dataset, file })
    await bed.until(jobId, { status: 'completed' })
  }
  bed.work = (concurrency = 4) => {
    const controller = new AbortController()
    const working = bed.engine.work({ concurrency, pollMs: 200, sweepMs: 500, signal: controller.signal })
    const stop = async () => {
      controller.abort()
      await working
    }
    stops.push(stop)
    return stop
  }
  return bed
}
