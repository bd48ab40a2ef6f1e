import { mkdirSync, writeFileSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { openEmbeddedPostgres, openEngine, type Engine, type Job } from '@fencepost/engine'
import pg from 'pg'
import { operations } from './operations.ts'
import { readReports, type Report } from './report.ts'
import { ensureSample, sampleCsv, sampleYear } from './sample.ts'
import type { Screen } from './screen.ts'
import { makeTables } from './tables.ts'
import { startWorker, type WorkerProcess } from './worker-process.ts'

const path = (name: string) => fileURLToPath(new URL(`../${name}`, import.meta.url))

export const files = {
  activities: path('.cache/activities-2025.csv'),
  /** Fewer rows, and other ones. */
  corrected: path('.cache/activities-2025-corrected.csv'),
  factors: path('data/factors-2025.csv'),
  revised: path('data/factors-2025-revised.csv'),
}

export const correctedRows = 20_000

/** Everything that the scenes of the tour share. */
export interface World {
  engine: Engine
  screen: Screen
  signal: AbortSignal
  /** Starts a worker process; one that still runs at the end is stopped. */
  worker(name: string, linesPerSecond?: number): WorkerProcess
  /** The reports, the latest first. */
  reports(): Promise<Report[]>
  /** Looks at a job until what is wanted of it is so. */
  until(jobId: string, wanted: (job: Job) => boolean): Promise<Job>
  /** Shows the jobs of a pipeline until it has ended. */
  follow(pipelineId: string): Promise<Job[]>
  close(): Promise<void>
}

export interface WorldOptions {
  screen: Screen
  signal: AbortSignal
  /** A Postgres to use; an embedded one of its own, which leaves nothing behind, when left out. */
  database: string | undefined
  /** How old a claim must be before an operator may take its job for stuck. */
  staleMs: number
}

const lookEveryMs = 60

export async function openWorld({ screen, signal, database, staleMs }: WorldOptions): Promise<World> {
  ensureSample(files.activities)
  mkdirSync(path('.cache'), { recursive: true })
  writeFileSync(files.corrected, sampleCsv(correctedRows, 2))
  const server = database === undefined ? await openEmbeddedPostgres({ temporary: true }) : undefined
  const url = database ?? server?.url ?? ''
  const engine = await openEngine({ database: url, operations, staleMs })
  const pool = new pg.Pool({ connectionString: url, max: 2 })
  pool.on('error', () => {}) // the next statement says so
  await makeTables(pool)
  const workers: WorkerProcess[] = []
  const look = () => delay(lookEveryMs, undefined, { signal })
  return {
    engine,
    screen,
    signal,
    worker(name, linesPerSecond) {
      const worker = startWorker(name, url, linesPerSecond)
      workers.push(worker)
      return worker
    },
    reports: () => readReports(pool, sampleYear),
    async until(jobId, wanted) {
      for (;;) {
        const job = await engine.get(jobId)
        if (job !== undefined && wanted(job)) return job
        await look()
      }
    },
    async follow(pipelineId) {
      for (;;) {
        const { status, jobs } = (await engine.pipeline(pipelineId)) ?? { status: 'running', jobs: [] }
        screen.jobs(jobs)
        if (status !== 'running') return jobs
        await look()
      }
    },
    async close() {
      await Promise.all(workers.map((worker) => worker.stop()))
      await pool.end()
      await engine.close()
      await server?.close()
    },
  }
}
