import { spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { readFileSync, rmSync } from 'node:fs'
import { createServer, type AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { openEmbeddedPostgres, openEngine, type EmbeddedPostgres } from '../../src/index.ts'
import { buildEngine, type BuiltEngine } from './built-engine.ts'
import { posting } from './programs/operations.ts'
import { isAlive } from './worker-bed.ts'

// A server of its own, on one port, that is stopped and started under two worker processes. Durable: what Postgres has
// called committed must be there after an immediate stop, or the test would measure that instead.

const jobs = 2_000

const modes = ['fast', 'immediate', 'fast', 'immediate'] as const
const stops = { fast: 'SIGINT', immediate: 'SIGQUIT' } as const

/** A Postgres that can be stopped and started again at the same address. */
class RestartedPostgres {
  readonly #directory = join(tmpdir(), `fencepost-restarted-${randomBytes(6).toString('hex')}`)
  readonly #uses: EmbeddedPostgres[] = []
  readonly #port: number

  constructor(port: number) {
    this.#port = port
  }

  get url(): string {
    return this.#uses[0]?.url ?? ''
  }

  async start(): Promise<void> {
    this.#uses.push(await openEmbeddedPostgres({ directory: this.#directory, settings: { port: this.#port } }))
  }

  async stop(mode: keyof typeof stops): Promise<void> {
    const pid = Number(readFileSync(join(this.#directory, 'data/postmaster.pid'), 'utf8').split('\n')[0])
    process.kill(pid, stops[mode])
    await expect.poll(() => isAlive(pid), { timeout: 30_000, interval: 20 }).toBe(false)
  }

  async close(): Promise<void> {
    for (const use of this.#uses) await use.close()
    rmSync(this.#directory, { recursive: true, force: true })
  }

  async query<Row>(text: string): Promise<Row[]> {
    const client = new pg.Client({ connectionString: this.url })
    await client.connect()
    try {
      return (await client.query(text)).rows as Row[]
    } finally {
      await client.end()
    }
  }
}

async function freePort(): Promise<number> {
  const probe = createServer()
  await new Promise<void>((resolve) => probe.listen(0, '127.0.0.1', resolve))
  const { port } = probe.address() as AddressInfo
  await new Promise((resolve) => probe.close(resolve))
  return port
}

describe('Postgres stopped and started in the middle of everything', () => {
  let built: BuiltEngine
  let postgres: RestartedPostgres
  const workers: { output: string; code: number | null | undefined; stop: () => void }[] = []

  beforeAll(() => {
    built = buildEngine()
  })
  beforeEach(async () => {
    postgres = new RestartedPostgres(await freePort())
    await postgres.start()
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
