import pg from 'pg'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { z } from 'zod'
import type { Engine } from '../../src/engine.ts'
import { child, defer } from '../../src/lifecycle/defer.ts'
import { operation, type Run } from '../../src/operation.ts'
import type { EngineOptions } from '../../src/options.ts'
import type { WorkOptions } from '../../src/worker/options.ts'
import { openBed, submitted, type Bed } from '../bed.ts'

/*
 * What every wake-up must do, and what it must not be needed for. Where workers could find a job by looking, they look
 * once an hour: then only a wake-up can have told them.
 */

/** A wake-up under test. */
export interface WakeUpBed {
  /** What makes engines and workers use it. */
  engine: Partial<EngineOptions>
  work?: WorkOptions
  /** Absent where nothing is announced. */
  announces?: {
    /** How many workers listen now. */
    listeners(bed: Bed): Promise<number>
    /** Breaks every connection over which workers are told. */
    cut(bed: Bed): Promise<void>
    /** Says again, twice, that these jobs are there. */
    repeat(bed: Bed, jobIds: readonly string[]): Promise<void>
    /** Sends what nobody can make sense of, to all places where sense is expected. */
    rubbish(bed: Bed): Promise<void>
  }
  close(): Promise<void>
}

type Handler = (run: Run<Record<string, unknown>>) => Promise<unknown>
let handler: Handler = async () => null
const handled = operation('handled', {
  keys: 'caller',
  payload: z.looseObject({}),
  leaseMs: 60_000,
  run: (run) => handler(run),
})

const never = 3_600_000
const soon = { timeout: 20_000 }

/** Workers that run until the test is over, and what they ran. */
class Workers {
  readonly ran: string[] = []
  readonly #bed: Bed
  readonly #wakeUp: WakeUpBed
  readonly #stops: (() => Promise<void>)[] = []

  constructor(bed: Bed, wakeUp: WakeUpBed) {
    this.#bed = bed
    this.#wakeUp = wakeUp
    handler = async ({ attempt }) => {
      this.ran.push(attempt.jobId)
    }
  }

  /** One more worker, on an engine of its own, as in another process. */
  async start(options: WorkOptions = {}): Promise<{ engine: Engine; stop: () => Promise<void> }> {
    const engine = await this.#bed.open()
    const controller = new AbortController()
    const worked = engine.work({
      concurrency: 4,
      pollMs: never,
      sweepMs: never,
      ...this.#wakeUp.work,
      ...options,
      signal: controller.signal,
    })
    const stop = async () => {
      controller.abort()
      await worked
      await engine.close()
    }
    this.#stops.push(stop)
    return { engine, stop }
  }

  /** Resolves when so many workers can be told, and none of them is looking for itself. */
  async listening(count: number): Promise<void> {
    const { announces } = this.#wakeUp
    if (announces !== undefined) await expect.poll(() => announces.listeners(this.#bed), soon).toBe(count)
    await expect.poll(async () => (await this.#bed.engine.workers()).length, soon).toBe(count)
    // They look once when they have begun to listen; a job that is run after that was announced.
    const jobId = await submitted(this.#bed.engine.submit(handled, {}))
    await this.ended([jobId])
  }

  async ended(jobIds: readonly string[]): Promise<void> {
    await expect
      .poll(async () => {
        const rows = await this.#bed.query<{ job_id: string }>(
          `select replace(job_id::text, '-', '') as job_id from fencepost.finished_jobs where status = 'completed'`,
        )
        return jobIds.filter((jobId) => !rows.some((row) => row.job_id === jobId)).length
      }, soon)
      .toBe(0)
  }

  async stopAll(): Promise<void> {
    await Promise.all(this.#stops.map((stop) => stop()))
  }
}

const times = (count: number) => Array.from({ length: count }, () => ({ payload: {} }))

/** The ids of bulk submissions that must all have been accepted. */
async function submittedAll(engine: Engine, count: number): Promise<string[]> {
  const answers = await engine.submitMany(handled, times(count))
  return answers.flatMap((answer) => (answer.submitted ? [answer.jobId] : []))
}

/** Runs the suite against one wake-up. */
export function conformsAsWakeUp(open: () => Promise<WakeUpBed>, { announces }: { announces: boolean }): void {
  let wakeUp: WakeUpBed
  let bed: Bed
  let workers: Workers

  beforeAll(async () => {
    wakeUp = await open()
    bed = await openBed({ ...wakeUp.engine, operations: [handled] })
  }, 120_000)
  beforeEach(async () => {
    await bed.reset()
    workers = new Workers(bed, wakeUp)
  })
  afterEach(() => workers.stopAll())
  afterAll(async () => {
    await bed.close()
    await wakeUp.close()
  }, 60_000)

  const announcing = () => {
    if (wakeUp.announces === undefined) throw new Error('nothing is announced here')
    return wakeUp.announces
  }

  test('each job runs once, however many workers hear of it', async () => {
    for (let n = 0; n < 3; n += 1) await workers.start()
    await workers.listening(3)
    const bulk = await submittedAll(bed.engine, 300)
    const single = await Promise.all(Array.from({ length: 60 }, () => submitted(bed.engine.submit(handled, {}))))
    await workers.ended([...bulk, ...single])
    const counted = [...bulk, ...single].map((jobId) => workers.ran.filter((ran) => ran === jobId).length)
    expect(counted).toEqual(Array.from({ length: 360 }, () => 1))
  })

  test('what was not announced is found by looking', async () => {
    await workers.start({ pollMs: 50 })
    const client = new pg.Client({ connectionString: bed.url })
    await client.connect()
    const jobId = await submitted(bed.engine.submit(handled, {}, { client })) // and no wake() after it
    await client.end()
    await workers.ended([jobId])
    expect(workers.ran).toEqual([jobId])
  })

  test('a worker that stops leaves nothing claimed and no connection', async () => {
    const { stop } = await workers.start()
    await workers.listening(1)
    await stop()
    expect(await bed.query(`select from fencepost.live_jobs`)).toEqual([])
    if (announces) await expect.poll(() => announcing().listeners(bed), soon).toBe(0)
  })

  // Without announcements there is nothing to tell by, and nothing to break.
  if (!announces) return
  describe('announced', () => {
    test('a submitted job runs soon', async () => {
      await workers.start()
      await workers.listening(1)
      for (let n = 0; n < 5; n += 1) await workers.ended([await submitted(bed.engine.submit(handled, {}))])
      await workers.ended(await submittedAll(bed.engine, 50))
      expect(workers.ran).toHaveLength(56)
    })

    test('so does one that waits for its time, when that has come', async () => {
      await workers.start()
      await workers.listening(1)
      await workers.ended([await submitted(bed.engine.submit(handled, {}, { delayMs: 200 }))])
      expect(workers.ran).toHaveLength(2)
    })

    test('so do children, chained jobs and jobs that were given back', async () => {
      const ids = (await submittedAll(bed.engine, 3)) as [string, string, string]
      const claimed = await bed.engine.claim({ limit: 3 })
      const [parent, first, held] = ids.map((id) => claimed.find(({ jobId }) => jobId === id))
      if (parent === undefined || first === undefined || held === undefined) throw new Error('not claimed')
      await workers.start()
      await workers.listening(1)
      await bed.engine.complete(parent, defer([child(handled, {}), child(handled, {})]))
      await expect.poll(() => workers.ran.length, soon).toBe(3)
      first.chain(handled, {})
      await bed.engine.complete(first)
      await expect.poll(() => workers.ran.length, soon).toBe(4)
      await bed.engine.release(held, 'a test')
      await workers.ended(ids)
      expect(workers.ran).toHaveLength(5)
    })

    test('so does one whose worker fell silent, as soon as it is swept', async () => {
      const jobId = await submitted(bed.engine.submit(handled, {}))
      await bed.engine.claim({ leaseMs: 1_000 })
      await workers.start()
      await workers.listening(1)
      await bed.advance(2_000)
      // One sweep at a time: the worker's own, from its first look, may still be at it, and have looked too early.
      await expect.poll(() => bed.engine.sweep(), soon).toBeDefined()
      await workers.ended([jobId])
      expect(workers.ran).toContain(jobId)
    })

    test('what is announced twice, or is rubbish, changes nothing', async () => {
      for (let n = 0; n < 2; n += 1) await workers.start()
      await workers.listening(2)
      const jobIds = await submittedAll(bed.engine, 50)
      await announcing().repeat(bed, jobIds)
      await announcing().rubbish(bed)
      await workers.ended(jobIds)
      await announcing().repeat(bed, jobIds)
      await announcing().rubbish(bed)
      const last = await submitted(bed.engine.submit(handled, {}))
      await workers.ended([last])
      expect(jobIds.map((jobId) => workers.ran.filter((ran) => ran === jobId).length)).toEqual(jobIds.map(() => 1))
      expect(await announcing().listeners(bed)).toBe(2)
    })

    test('connections that are cut are made again, and nothing is lost', { timeout: 60_000 }, async () => {
      for (let n = 0; n < 2; n += 1) await workers.start()
      await workers.listening(2)
      const jobIds: string[] = []
      for (let round = 0; round < 2; round += 1) {
        const cut = announcing().cut(bed)
        for (let n = 0; n < 20; n += 1) jobIds.push(await submitted(bed.engine.submit(handled, {})))
        await cut
        jobIds.push(await submitted(bed.engine.submit(handled, {})))
        await expect.poll(() => announcing().listeners(bed), soon).toBe(2)
        await workers.ended(jobIds)
      }
      await workers.ended([await submitted(bed.engine.submit(handled, {}))])
      expect(jobIds.map((jobId) => workers.ran.filter((ran) => ran === jobId).length)).toEqual(jobIds.map(() => 1))
    })

    test('a cancel reaches the running handler', async () => {
      await workers.start()
      await workers.listening(1)
      const reasons: unknown[] = []
      let running = false
      handler = ({ attempt, signal }) => {
        running = true
        return new Promise((resolve) => {
          signal.addEventListener('abort', () => {
            reasons.push(attempt.abortReason)
            resolve(null)
          })
        })
      }
      const jobId = await submitted(bed.engine.submit(handled, {}))
      await expect.poll(() => running, soon).toBe(true)
      await bed.engine.cancel(jobId)
      await expect.poll(() => reasons, { timeout: 10_000 }).toEqual(['cancelled'])
    })
  })
}
