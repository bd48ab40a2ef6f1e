// @ts-check
import { createInterface } from 'node:readline'
import { setTimeout as pause } from 'node:timers/promises'
import pg from 'pg'
import { now } from '../src/clock.mjs'

/*
 * What every adapter process does: JSON lines in, JSON lines out, one adapter behind them.
 *
 *   → { id, verb, args }      ← { id, value } or { id, error }
 *
 * The loops that are timed (many single enqueues, bulk batches, latency pulses) are here and not in the adapters, so
 * that they are the same for every system. An adapter only translates to its library's public calls. The process ends
 * when its stdin does: it never outlives the bench.
 */

/**
 * @typedef {object} Handling What a worker calls for its jobs.
 * @property {(nth: number, job?: any) => Promise<void>} handle one job, and what its library knows it by
 * @property {(nths: number[], atOnce: number) => Promise<void>} handleMany a batch, for libraries that hand out batches
 *
 * @typedef {object} Enqueuing
 * @property {number} startInSeconds
 * @property {boolean} once a job that fails is not tried again
 *
 * @typedef {object} Adapter
 * @property {number} batch jobs per bulk call
 * @property {() => Promise<void>} [setup] schema and queue
 * @property {(nths: number[], how: Enqueuing) => Promise<unknown>} enqueueMany
 * @property {(nth: number) => Promise<unknown>} enqueueOne
 * @property {(client: pg.PoolClient, nth: number) => Promise<unknown>} [enqueueWith] inside the caller's transaction
 * @property {() => void} [committed] after the caller's commit
 * @property {(profile: string) => Promise<unknown>} [getReady] opens the connections that `work` will use, before the clock
 * @property {(profile: string, handling: Handling) => Promise<() => Promise<void>>} work the answer stops it
 * @property {(children: number) => Promise<unknown>} [fanOut]
 * @property {(job: any, nth: number) => void} [chain] a job that exists only if this one completes
 * @property {(job: any) => Promise<never>} [comeBack] ends this run: the job is to run again, at once, and has not failed
 * @property {(args: any) => Promise<unknown>} [takeForDead] an operator's verb, where no lease can be set
 * @property {() => Promise<void>} close
 */

const verbs = {
  setup: () => adapter.setup?.(),
  enqueue_bulk: enqueueBulk,
  enqueue_single: ({ seconds, inFlight }) => pump(seconds, inFlight, (nth) => adapter.enqueueOne(nth)),
  enqueue_in_transaction: enqueueInTransaction,
  pulse,
  get_ready: ({ profile }) => adapter.getReady?.(profile),
  work: async ({ profile, handler }) => {
    stopWork = await adapter.work(profile, handlingOf(handler))
  },
  handled: ({ count }) => new Promise((resolve) => waitHandled({ count, resolve })),
  starts: () => starts,
  cpu_ms: cpuMs,
  finish: () => releaseHeld(),
  fan_out: ({ children }) => adapter.fanOut?.(children),
  take_for_dead: (args) => adapter.takeForDead?.(args),
  close: async () => {
    await stopWork?.()
    await adapter.close()
  },
}

const { name, url, poolSize = 10, options = {} } = JSON.parse(process.argv[2] ?? '{}')
process.on('SIGINT', () => {}) // Ctrl-C reaches the whole group; the bench ends us by closing stdin
/** @type {Adapter} */
const adapter = await import(`./${name}.mjs`).then((module) => module.open({ url, poolSize, options }))
/** @type {undefined | (() => Promise<void>)} */
let stopWork
let handled = 0
let wanted = { count: Infinity, resolve: (/** @type {unknown} */ _) => {} }
/** @type {{ nth: number, at: number }[]} */
const starts = []
let releaseHeld = () => {}
const held = new Promise((resolve) => (releaseHeld = () => resolve(undefined)))

const lines = createInterface({ input: process.stdin })
lines.on('line', (line) => void answer(JSON.parse(line)))
lines.on('close', () => process.exit(0))
say({ ready: true })

async function answer({ id, verb, args }) {
  try {
    say({ id, value: (await verbs[verb](args ?? {})) ?? null })
  } catch (error) {
    say({ id, error: error instanceof Error ? (error.stack ?? error.message) : String(error) })
  }
}

function say(message) {
  process.stdout.write(`${JSON.stringify(message)}\n`)
}

// ---- enqueuing

async function enqueueBulk({ count, startInSeconds = 0, once = false }) {
  const began = now()
  for (let from = 0; from < count; from += adapter.batch) {
    const size = Math.min(adapter.batch, count - from)
    await adapter.enqueueMany(
      Array.from({ length: size }, (_, at) => from + at),
      { startInSeconds, once },
    )
  }
  return { ms: now() - began }
}

/** As many calls as fit in the time, so many at once; a call counts when it has resolved. */
async function pump(seconds, inFlight, call) {
  let next = 0
  let done = 0
  const began = now()
  const until = began + seconds * 1000
  const lane = async () => {
    while (now() < until) {
      await call(next++)
      done += 1
    }
  }
  await Promise.all(Array.from({ length: inFlight }, lane))
  return { count: done, ms: now() - began }
}

async function enqueueInTransaction({ seconds, inFlight }) {
  const pool = new pg.Pool({ connectionString: url, max: inFlight })
  await pool.query('create table if not exists bench_orders (id bigint generated always as identity, note text)')
  const result = await pump(seconds, inFlight, async (nth) => {
    const client = await pool.connect()
    try {
      await client.query('begin')
      await client.query('insert into bench_orders (note) values ($1)', [`order ${nth}`])
      await adapter.enqueueWith?.(client, nth)
      await client.query('commit')
    } finally {
      client.release()
    }
    adapter.committed?.()
  })
  await pool.end()
  return result
}

/** One enqueue now and then, to a worker that has nothing else to do. */
async function pulse({ from, count, everyMs }) {
  const sent = []
  for (let nth = from; nth < from + count; nth += 1) {
    await pause(everyMs * (0.5 + Math.random()))
    const calledAt = now()
    await adapter.enqueueOne(nth)
    sent.push({ nth, calledAt, committedAt: now() })
  }
  return sent
}

// ---- handling

/** @returns {Handling} */
function handlingOf(handler) {
  const one = handlers[handler]
  const many = handlersOfBatches[handler]
  return { handle: one, handleMany: many ?? ((nths, atOnce) => eachOf(nths, atOnce, (nth) => one(nth))) }
}

/** Jobs that have asked to come back. */
const cameBack = new Set()

const handlers = {
  noop: async () => count(1),
  fail: async () => {
    count(1)
    throw new Error('This job fails.')
  },
  fail_every_second: async (nth) => {
    count(1)
    if (nth % 2 === 1) throw new Error('This job fails.')
  },
  chain: async (nth, job) => {
    count(1)
    if (nth >= 0) adapter.chain?.(job, -1 - nth) // what is chained chains nothing
  },
  come_back: async (nth, job) => {
    count(1)
    if (cameBack.has(nth)) return
    cameBack.add(nth)
    await adapter.comeBack?.(job)
  },
  sleep: async () => {
    await pause(1)
    count(1)
  },
  record: async (nth) => {
    starts.push({ nth, at: now() })
    count(1)
  },
  hold: async (nth) => {
    starts.push({ nth, at: now() })
    count(1)
    await held
  },
}

// For a library that hands out batches: a batch of no-ops is one no-op, without a promise per job, and a batch in which
// all fail is one failure.
const handlersOfBatches = {
  noop: async (nths) => count(nths.length),
  fail: async (nths) => {
    count(nths.length)
    throw new Error('These jobs fail.')
  },
}

function count(more) {
  handled += more
  checkHandled()
}

function waitHandled(wait) {
  wanted = wait
  checkHandled()
}

function checkHandled() {
  if (handled < wanted.count) return
  wanted.resolve(handled)
  wanted = { count: Infinity, resolve: () => {} }
}

/** The processor time of this process so far. */
function cpuMs() {
  const { user, system } = process.cpuUsage()
  return (user + system) / 1000
}

async function eachOf(items, atOnce, work) {
  let next = 0
  const lane = async () => {
    while (next < items.length) await work(items[next++])
  }
  await Promise.all(Array.from({ length: Math.min(atOnce, items.length) }, lane))
}
