import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { openEmbeddedPostgres, openEngine, type Engine, type Job } from '@fencepost/engine'
import pg from 'pg'
import { operations } from './operations.ts'
import { readReports, type Report } from './report.ts'
import { ensureSample, sampleYear } from './sample.ts'
import type { Screen } from './screen.ts'
import { makeTables } from './tables.ts'
import { startWorker, type WorkerProcess } from './worker-process.ts'

const path = (name: string) => fileURLToPath(new URL(`../${name}`, import.meta.url))

export const factorFiles = { factors: path('data/factors-2025.csv'), revised: path('data/factors-2025-revised.csv') }

/** A file of activities, and how many rows it has. */
export interface Activities {
  file: string
  rows: number
}

/** The sample in a folder of its own, made where it is not there yet. Another start gives other rows. */
export function activitiesOf(rows: number, start = 1): Activities {
  const file = path(`.cache/${rows}/activities-${sampleYear}${start === 1 ? '' : '-corrected'}.csv`)
  ensureSample(file, rows, start)
  return { file, rows }
}

/** Everything that the scenes of the tour share. */
export interface World {
  engine: Engine
  screen: Screen
  signal: AbortSignal
  activities: Activities
  /** For the same year; fewer rows, and other ones. */
  corrected: Activities
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
  /** How many rows the sample has. */
  rows: number
  /** How old a claim must be before an operator may take its job for stuck. */
  staleMs: number
}

const lookEveryMs = 60

export async function openWorld({ screen, signal, database, rows, staleMs }: WorldOptions): Promise<World> {
  const activities = activitiesOf(rows)
  const corrected = activitiesOf(Math.ceil(rows / 5), 2)
  const server = database === undefined ? await openEmbeddedPostgres({ temporary: true, durable: false }) : undefined
  const url = database ?? server?.url ?? ''
  const engine = await openEngine({ database: url, operations, staleMs })
  const pool = new pg.Pool({ connectionString: url, max: 2 })
  pool.on('error', () => {}) // the next statement says so
  const workers: WorkerProcess[] = []
  const close = async () => {
    await Promise.all(workers.map((worker) => worker.stop()))
    await pool.end()
    await engine.close()
    await server?.close()
  }
  try {
    await makeTables(pool)
  } catch (error) {
    await close()
    throw error
  }
  const look = () => delay(lookEveryMs, undefined, { signal })
  return {
    engine,
    screen,
    signal,
    activities,
    corrected,
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
        const ended = status !== 'running'
        screen.jobs(jobs, ended)
        if (ended) return jobs
        await look()
      }
    },
    close,
  }
}
