import { spawn } from 'node:child_process'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { openEngine } from '../../src/index.ts'
import { buildEngine, type BuiltEngine } from './built-engine.ts'
import { posting } from './programs/operations.ts'
import { RestartedPostgres } from './restarted-postgres.ts'

// A server of its own, on one port, that is stopped and started under two worker processes. Durable: what Postgres has
// called committed must be there after an immediate stop, or the test would measure that instead.

const jobs = 2_000

const modes = ['fast', 'immediate', 'fast', 'immediate'] as const

describe('Postgres stopped and started in the middle of everything', () => {
  let built: BuiltEngine
  let postgres: RestartedPostgres
  const workers: { output: string; code: number | null | undefined; stop: () => void }[] = []

  beforeAll(() => {
    built = buildEngine()
  })
  beforeEach(async () => {
    postgres = await RestartedPostgres.open()
    const engine = await openEngine({ database: postgres.url, operations: [posting] })
    await postgres.query('create table ledger (job_id text, attempt_id text)')
    await engine.submitMany(
      posting,
      Array.from({ length: jobs }, () => ({ payload: {} })),
    )
    await engine.close()
  })
  afterEach(async () => {
    for (const worker of workers.splice(0)) worker.stop()
    await postgres.close()
  })
  afterAll(() => built.remove())

  const startWorker = () => {
    const program = join(built.directory, 'programs/worker.js')
    const child = spawn(process.execPath, [program, JSON.stringify({ worker: { concurrency: 8 } })], {
      cwd: built.directory,
      env: { ...process.env, DATABASE_URL: postgres.url },
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    const worker = { output: '', code: undefined as number | null | undefined, stop: () => void child.kill('SIGTERM') }
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding('utf8').on('data', (text: string) => {
        worker.output += text
      })
    }
    child.once('exit', (code) => {
      worker.code = code
    })
    workers.push(worker)
  }
  const completed = async () => {
    const rows = await postgres.query(`select from fencepost.finished_jobs where status = 'completed'`)
    return rows.length
  }

  test('loses no job, doubles none, and ends no worker', async () => {
    startWorker()
    startWorker()
    for (const [nth, mode] of modes.entries()) {
      const share = (jobs * (nth + 1)) / (modes.length + 1)
      await expect.poll(completed, { timeout: 60_000, interval: 20 }).toBeGreaterThan(share)
      expect(await completed()).toBeLessThan(jobs)
      await postgres.stop(mode)
      await postgres.start()
    }
    await expect.poll(completed, { timeout: 90_000 }).toBe(jobs)
    const [ledger] = await postgres.query(
      'select count(*)::integer as lines, count(distinct job_id)::integer as jobs from ledger',
    )
    expect(ledger).toEqual({ lines: jobs, jobs })
    expect(await postgres.query('select from fencepost.live_jobs')).toEqual([])
    expect(workers.map(({ code }) => code)).toEqual([undefined, undefined])
    for (const worker of workers) worker.stop()
    await expect.poll(() => workers.map(({ code }) => code), { timeout: 10_000 }).toEqual([0, 0])
    for (const { output } of workers) {
      expect(output).toContain('listen_connection_lost')
      expect(output).not.toMatch(/unhandled|uncaught/i)
    }
  }, 240_000)
})
