import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { z } from 'zod'
import { openBed, submitted, work, type Bed } from '../../test/bed.ts'
import type { Attempt } from '../attempt/attempt.ts'
import type { PausePoint } from '../database/database.ts'
import type { Engine } from '../engine.ts'
import { operation, type Run } from '../operation.ts'
import type { WakeUpTransport } from '../wake.ts'
import type { WorkOptions } from './options.ts'
import type { WakeUpListener } from './wake-up.ts'

let handler: (run: Run<Record<string, unknown>>) => Promise<unknown> = async () => null
const handled = operation('handled', {
  keys: 'caller',
  payload: z.looseObject({}),
  retry: { firstDelayMs: 50 },
  run: (run) => handler(run),
})
const failing = operation('failing', {
  keys: 'caller',
  payload: z.looseObject({}),
  onShutdown: 'fail',
  run: (run) => handler(run),
})

let bed: Bed
beforeAll(async () => {
  bed = await openBed({ operations: [work, handled, failing] })
})
beforeEach(() => bed.reset())
afterAll(() => bed.close())

/** A worker that runs until it is stopped. */
function start(options: WorkOptions = {}, engine: Engine = bed.engine) {
  const controller = new AbortController()
  const worked = engine.work({ concurrency: 4, sweepMs: 100, ...options, signal: controller.signal })
  return {
    stop: async () => {
      controller.abort()
      await worked
    },
  }
}

function closedGate() {
  let letGo = () => {}
  const gate = new Promise<void>((resolve) => {
    letGo = resolve
  })
  return { gate, letGo }
}

const statusOf = async (jobId: string) => (await bed.engine.get(jobId))?.status
const ended = async (count: number) =>
  expect.poll(() => bed.query('select from fencepost.finished_jobs'), { timeout: 10_000 }).toHaveLength(count)

describe('a worker', () => {
  test('runs what was there and what comes, each job once', async () => {
    const ran: unknown[] = []
    handler = async ({ payload }) => {
      ran.push(payload['n'])
    }
    const items = (from: number) => Array.from({ length: 500 }, (_, n) => ({ payload: { n: from + n } }))
    await bed.engine.submitMany(handled, items(0))
    const worker = start({ pollMs: 60_000 })
    await ended(500)
    await bed.engine.submitMany(handled, items(500))
    await ended(1000)
    await worker.stop()
    expect(ran.toSorted((a, b) => Number(a) - Number(b))).toEqual(Array.from({ length: 1000 }, (_, n) => n))
  })

  test('claims from a queue that was announced while jobs of others filled its places', async () => {
    let listener: WakeUpListener | undefined
    const wakeUp: WakeUpTransport = {
      open: async () => ({
        namesJobs: true,
        send: async () => {},
        listen: () => ({
          start: async (_queues, _concurrency, given) => {
            listener = given
          },
          stop: async () => {},
        }),
        close: async () => {},
      }),
    }
    let held = 0
    const { gate, letGo } = closedGate()
    const pausePoint: PausePoint = async ({ statement }) => {
      if (statement !== 'claim') return
      held += 1
      await gate
    }
    const engine = await bed.open({ operations: [handled], wakeUp }, { pausePoint })
    let ran = 0
    handler = async () => {
      ran += 1
    }
    const worker = start({ concurrency: 2, pollMs: 3_600_000, sweepMs: 3_600_000 }, engine)
    await expect.poll(() => listener, { timeout: 10_000 }).toBeDefined()
    const told = listener
    const answers = ['1', '2'].map(async (digit) => told?.onJob(digit.repeat(32), 'default'))
    await expect.poll(() => held, { timeout: 10_000 }).toBe(1)
    await submitted(engine.submit(handled, {}))
    told?.onWake('default')
    letGo()
    expect(await Promise.all(answers)).toEqual(['not_claimed', 'not_claimed'])
    await ended(1)
    expect(ran).toBe(1)
    await worker.stop()
    await engine.close()
  })

  test('claims nothing that was pushed while its own claim may fill its places', async () => {
    let listener: WakeUpListener | undefined
    const wakeUp: WakeUpTransport = {
      open: async () => ({
        namesJobs: true,
        send: async () => {},
        listen: () => ({
          start: async (_queues, _concurrency, given) => {
            listener = given
          },
          stop: async () => {},
        }),
        close: async () => {},
      }),
    }
    let held = 0
    const claimed = closedGate()
    const pausePoint: PausePoint = async ({ statement }) => {
      if (statement !== 'claim') return
      held += 1
      await claimed.gate
    }
    const engine = await bed.open({ operations: [handled], wakeUp }, { pausePoint })
    const running = closedGate()
    handler = () => running.gate
    const first = await submitted(engine.submit(handled, {}))
    const worker = start({ concurrency: 1, pollMs: 3_600_000, sweepMs: 3_600_000 }, engine)
    await expect.poll(() => held, { timeout: 10_000 }).toBe(1) // the worker's own look has found the first
    const second = await submitted(engine.submit(handled, {}))
    const pushed = listener?.onJob(second, 'default')
    claimed.letGo()
    expect(await pushed).toBe('declined')
    expect(await statusOf(first)).toBe('running')
    expect(await statusOf(second)).toBe('pending')
    running.letGo()
    await ended(2)
    await worker.stop()
    await engine.close()
  })

  test('gives back what it has claimed ahead when its handlers have become slow', async () => {
    const slow = await bed.open({ operations: [handled], workerId: 'slow' })
    const quick = await bed.open({ operations: [handled], workerId: 'quick' })
    const { gate, letGo } = closedGate()
    let blocked = 0
    handler = async ({ payload, attempt }) => {
      if (attempt.claimed.workerId !== 'slow' || Number(payload['n']) < 1_000) return
      blocked += 1
      await gate
    }
    const jobs = Array.from({ length: 2_000 }, (_, n) => ({ payload: { n } }))
    await slow.submitMany(handled, jobs)
    const first = start({ concurrency: 4 }, slow)
    try {
      await expect.poll(() => blocked, { timeout: 20_000 }).toBe(4)
      const second = start({ concurrency: 100 }, quick)
      await ended(jobs.length - 4)
      await second.stop()
    } finally {
      letGo()
    }
    await ended(jobs.length)
    await first.stop()
    const released = await bed.query<{ message: string; fields: { worker: string } }>(
      `select message, fields from fencepost.job_events where event = 'job.released'`,
    )
    expect(released.length).toBeGreaterThan(0)
    expect(new Set(released.map(({ message, fields }) => `${message} by ${fields.worker}`))).toEqual(
      new Set(['not_started by slow']),
    )
    expect(await bed.query('select from fencepost.jobs where attempts <> 1')).toEqual([])
  })

  test('removes what is past its retention while it works, once in a while', async () => {
    const engine = await bed.open({ operations: [handled], retentionMs: 60_000 })
    handler = async () => null
    const old = await submitted(engine.submit(handled, {}))
    await engine.complete((await engine.claim())[0] as Attempt)
    await bed.advance(120_000)
    const worker = start({ retainMs: 100 }, engine)
    const recent = await submitted(engine.submit(handled, {}))
    await expect.poll(() => statusOf(recent), { timeout: 10_000 }).toBe('completed')
    await expect.poll(() => statusOf(old), { timeout: 10_000 }).toBeUndefined()
    expect(await bed.query('select from fencepost.stored_events where job_id = $1', [old])).toEqual([])
    await bed.advance(120_000)
    await expect.poll(() => statusOf(recent), { timeout: 10_000 }).toBeUndefined() // and not only when it starts
    await worker.stop()
  })

  test('at a long queue sends one claim behind another, and no third', async () => {
    let claims = 0
    let held = 0
    const { gate, letGo } = closedGate()
    // From the fourth on, claims are sent when the test says so.
    const pausePoint: PausePoint = async ({ statement }) => {
      if (statement !== 'claim' || (claims += 1) < 4) return
      held += 1
      await gate
      held -= 1
    }
    const engine = await bed.open({ operations: [handled] }, { pausePoint })
    const ran: unknown[] = []
    handler = async ({ payload }) => {
      ran.push(payload['n'])
    }
    const items = Array.from({ length: 500 }, (_, n) => ({ payload: { n } }))
    await engine.submitMany(handled, items)
    const worker = start({ concurrency: 100, maxBatch: 10, pollMs: 60_000, wakeUp: 'none' }, engine)
    try {
      await expect.poll(() => held).toBe(2)
      await ended(30)
      expect(held).toBe(2)
    } finally {
      letGo()
    }
    await ended(500)
    await worker.stop()
    expect(new Set(ran).size).toBe(500)
    expect(ran).toHaveLength(500)
  })

  test('outlives a claim that fails before the one in front of it is answered', async () => {
    let claims = 0
    const { gate, letGo } = closedGate()
    const pausePoint: PausePoint = async ({ statement }) => {
      if (statement !== 'claim') return
      claims += 1
      if (claims === 4) await gate
      if (claims === 5) throw new Error('refused')
    }
    const unhandled: unknown[] = []
    const note = (error: unknown) => void unhandled.push(error)
    process.on('unhandledRejection', note)
    const engine = await bed.open({ operations: [handled] }, { pausePoint })
    handler = async () => null
    const items = Array.from({ length: 100 }, () => ({ payload: {} }))
    await engine.submitMany(handled, items)
    const worker = start({ concurrency: 100, maxBatch: 10, pollMs: 60_000, wakeUp: 'none' }, engine)
    try {
      await expect.poll(() => claims).toBe(5)
      await ended(30) // turns of the event loop, in which nobody waits for the fifth
    } finally {
      letGo()
    }
    await ended(100)
    await worker.stop()
    process.off('unhandledRejection', note)
    expect(unhandled).toEqual([])
  })

  test('claims no more than it has room for, counting what is being claimed', async () => {
    let claims = 0
    const pausePoint: PausePoint = async ({ statement }) => {
      if (statement === 'claim') claims += 1
    }
    const engine = await bed.open({ operations: [handled] }, { pausePoint })
    const { gate, letGo } = closedGate()
    handler = () => gate
    const items = Array.from({ length: 40 }, () => ({ payload: {} }))
    await engine.submitMany(handled, items)
    const worker = start({ concurrency: 25, maxBatch: 10, pollMs: 60_000, wakeUp: 'none' }, engine)
    // The third claim takes the last five places: none may follow it while it is under way.
    try {
      await expect.poll(() => bed.query(`select from fencepost.live_jobs where status = 'running'`)).toHaveLength(25)
      expect(claims).toBe(3)
    } finally {
      letGo()
    }
    await ended(40)
    await worker.stop()
  })

  test('never runs more handlers at once than it should', async () => {
    let now = 0
    let most = 0
    handler = async () => {
      now += 1
      most = Math.max(most, now)
      await new Promise((resolve) => setImmediate(resolve))
      now -= 1
    }
    await bed.engine.submitMany(
      handled,
      Array.from({ length: 200 }, () => ({ payload: {} })),
    )
    const worker = start({ concurrency: 3 })
    await ended(200)
    await worker.stop()
    expect(most).toBe(3)
  })

  test('finds work by looking, where nothing is announced', async () => {
    handler = async () => null
    const worker = start({ wakeUp: 'none', pollMs: 50 })
    const jobId = await submitted(bed.engine.submit(handled, {}))
    await ended(1)
    await worker.stop()
    expect(await statusOf(jobId)).toBe('completed')
  })

  test('comes back for a retry when it is due, not at the next look', async () => {
    let tries = 0
    handler = async () => {
      tries += 1
      if (tries === 1) throw new Error('once')
    }
    const worker = start({ pollMs: 60_000 })
    await submitted(bed.engine.submit(handled, {}))
    await ended(1)
    await worker.stop()
    expect(tries).toBe(2)
  })

  test('takes the next job of a slot as soon as it is free', async () => {
    handler = async () => null
    for (let n = 0; n < 5; n += 1) await bed.engine.submit(handled, {}, { slotKey: 's' })
    const worker = start({ pollMs: 60_000 })
    await ended(5)
    await worker.stop()
    expect(await bed.engine.list({ status: 'completed' })).toHaveLength(5)
  })

  test('an unhandled rejection fails its attempt and nothing else', async () => {
    handler = async ({ payload, signal }) => {
      if (payload['forgets'] !== true) return null
      void Promise.reject(new RangeError('nobody waited for this'))
      return new Promise((resolve) => signal.addEventListener('abort', resolve))
    }
    const bad = await submitted(bed.engine.submit(handled, { forgets: true }, { maxAttempts: 1 }))
    const good = await submitted(bed.engine.submit(handled, {}))
    const worker = start()
    await ended(2)
    await worker.stop()
    expect(await bed.engine.get(bad)).toMatchObject({ status: 'failed', errorCode: 'RangeError' })
    expect(await statusOf(good)).toBe('completed')
  })

  test('a cancelled job’s handler is told at once', async () => {
    const reasons: unknown[] = []
    let begun = () => {}
    const running = new Promise<void>((resolve) => {
      begun = resolve
    })
    handler = ({ attempt, signal }) => {
      begun()
      return new Promise((resolve) => {
        signal.addEventListener('abort', () => {
          reasons.push(attempt.abortReason)
          resolve(null)
        })
      })
    }
    const jobId = await submitted(bed.engine.submit(handled, {}, { lockKey: 'l' }))
    const worker = start()
    await running
    await bed.engine.cancel(jobId)
    await expect.poll(() => bed.query('select from fencepost.resource_locks')).toEqual([])
    await worker.stop()
    expect(reasons).toEqual(['cancelled'])
    expect(await statusOf(jobId)).toBe('cancelled')
  })
})

describe('stopping', () => {
  const hang = () => {
    let begun = () => {}
    const running = new Promise<void>((resolve) => {
      begun = resolve
    })
    handler = () => {
      begun()
      return new Promise(() => {})
    }
    return running
  }

  test('gives back what has not ended, without spending the attempt', async () => {
    const running = hang()
    const jobs = await bed.engine.submitMany(
      handled,
      Array.from({ length: 3 }, () => ({ payload: {} })),
    )
    const worker = start({ concurrency: 2, graceMs: 10 })
    await running
    await worker.stop()
    expect(await bed.engine.list({ status: 'pending' })).toHaveLength(jobs.length)
    expect((await bed.engine.list()).map(({ attempts }) => attempts)).toEqual([0, 0, 0])
  })

  test('fails what its operation wants failed', async () => {
    const running = hang()
    const jobId = await submitted(bed.engine.submit(failing, {}, { lockKey: 'l' }))
    const worker = start({ graceMs: 10, processEnds: true })
    await running
    await worker.stop()
    expect(await bed.engine.get(jobId)).toMatchObject({ status: 'failed', error: 'Worker received SIGTERM' })
    expect(await bed.query('select from fencepost.resource_locks')).toEqual([])
  })

  test('a handler that stops when told has not failed', async () => {
    let begun = () => {}
    const running = new Promise<void>((resolve) => {
      begun = resolve
    })
    handler = async ({ signal }) => {
      begun()
      await new Promise((_, reject) => signal.addEventListener('abort', () => reject(new Error('stopped'))))
    }
    const jobId = await submitted(bed.engine.submit(handled, {}))
    const worker = start({ graceMs: 60_000 })
    await running
    await worker.stop()
    expect(await bed.engine.get(jobId)).toMatchObject({ status: 'pending', attempts: 0 })
    expect((await bed.engine.events(jobId)).at(-1)).toMatchObject({ event: 'job.released', message: 'shutdown' })
  })
})

describe('the registry', () => {
  test('has a row for each call of work() on one engine, and only that of the one that stops goes', async () => {
    const first = start({ operations: ['work'] })
    await expect.poll(() => bed.engine.workers()).toHaveLength(1)
    const second = start({ operations: ['handled'], queues: ['other'] })
    await expect.poll(() => bed.engine.workers()).toHaveLength(2)
    const { workerId } = bed.engine
    const shown = async () => {
      const workers = await bed.engine.workers()
      return Object.fromEntries(workers.map((one) => [one.workerId, one.operations]))
    }
    expect(await shown()).toEqual({ [workerId]: ['work'], [`${workerId}-2`]: ['handled'] })
    await first.stop()
    expect(await shown()).toEqual({ [`${workerId}-2`]: ['handled'] })
    const third = start({ operations: ['work'] })
    await expect.poll(shown).toEqual({ [workerId]: ['work'], [`${workerId}-2`]: ['handled'] })
    await Promise.all([second.stop(), third.stop()])
    expect(await bed.engine.workers()).toEqual([])
  })

  test('shows a worker while it works, and calls it lost when it falls silent', async () => {
    const worker = start({ concurrency: 7 })
    await expect
      .poll(() => bed.engine.workers())
      .toMatchObject([
        { workerId: bed.engine.workerId, concurrency: 7, operations: ['work', 'handled', 'failing'], lost: false },
      ])
    await bed.advance(61_000)
    expect(await bed.engine.workers()).toMatchObject([{ lost: true }])
    await worker.stop()
    expect(await bed.engine.workers()).toEqual([])
  })
})
