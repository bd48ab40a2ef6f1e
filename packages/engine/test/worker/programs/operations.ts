import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { child, defer, operation, type Attempt } from '@fencepost/engine'
import pg from 'pg'
import { z } from 'zod'

// What the workers of these tests run. Handlers say where they run by an event with their pid: `<operation>.begun`.

const payload = z.looseObject({})
const retry = { firstDelayMs: 50 }
const begun = (attempt: Attempt) =>
  attempt.emit(`${attempt.claimed.operation}.begun`, { fields: { pid: process.pid, attempt: attempt.attemptId } })

export const plain = operation('plain', { keys: 'caller', payload, run: async () => ({ pid: process.pid }) })

/** Blocks its thread for as long as it is told, or for ever. */
export const busy = operation('busy', {
  keys: 'caller',
  payload: z.object({ ms: z.number().optional() }),
  isolation: 'process',
  leaseMs: 1_000,
  retry,
  run: async ({ payload, attempt }) => {
    await begun(attempt)
    const until = performance.now() + (payload.ms ?? Infinity)
    while (performance.now() < until);
    return { pid: process.pid }
  },
})

/** Blocks its thread for ever, and is to be failed for it. */
export const stubborn = operation('stubborn', {
  keys: 'caller',
  payload,
  isolation: 'process',
  onShutdown: 'fail',
  run: async ({ attempt }) => {
    await begun(attempt)
    for (;;);
  },
})

/** Stops when it is told to, and says why. */
export const polite = operation('polite', {
  keys: 'caller',
  payload,
  isolation: 'process',
  run: async ({ attempt, signal }) => {
    await begun(attempt)
    if (!signal.aborted) await once(signal, 'abort')
    throw new Error(`told to stop: ${attempt.abortReason}`)
  },
})

/** Ends its process in many ways. With a second attempt it does not. */
export const dying = operation('dying', {
  keys: 'caller',
  payload: z.object({ how: z.string() }),
  isolation: 'process',
  maxMemoryMb: 64,
  retry,
  run: async ({ payload, attempt }) => {
    if (attempt.claimed.attempts > 1) return { pid: process.pid }
    await begun(attempt)
    process.stderr.write(`about to end by ${payload.how}\n`)
    await die(payload.how)
    return null
  },
})

async function die(how: string): Promise<unknown> {
  switch (how) {
    case 'exit':
      process.exit(7)
      break
    case 'offspring':
      process.stderr.write(`offspring ${spawn('sleep', ['600']).pid}\n`)
      process.exit(0)
      break
    case 'abort':
      process.abort()
      break
    case 'segfault':
      process.kill(process.pid, 'SIGSEGV')
      break
    case 'memory':
      for (const kept: unknown[] = []; ;) kept.push(Array.from({ length: 100_000 }, (_, n) => ({ n })))
    case 'timer':
      setImmediate(() => {
        throw new RangeError('thrown by a timer')
      })
      break
    case 'rejection':
      void Promise.reject(new RangeError('nobody waited for this'))
      break
    case 'rejection, and it returns': // after it was told to stop
      void Promise.reject(new RangeError('nobody waited for this'))
      return new Promise((resolve) => setImmediate(() => setImmediate(resolve)))
    case 'throw':
      throw new RangeError('thrown')
  }
  return new Promise(() => {})
}

/** Uses everything that an attempt offers. */
export const talking = operation('talking', {
  keys: 'caller',
  payload,
  isolation: 'process',
  run: async ({ attempt }) => {
    await begun(attempt)
    await attempt.progress(1, 2)
    const step = await attempt.step('first', async () => 'kept')
    await attempt.transaction((client) => client.query('insert into ledger values ($1, $2)', [attempt.jobId, step]))
    attempt.chain(plain, {})
    return { step }
  },
})

/** Completes by itself, in one commit with its row. */
export const completing = operation('completing', {
  keys: 'caller',
  payload,
  isolation: 'process',
  run: async ({ attempt }) => {
    attempt.chain(plain, {})
    await attempt.complete(async (client) => {
      await client.query('insert into ledger values ($1, $2)', [attempt.jobId, 'completed'])
      return { pid: process.pid }
    })
  },
})

/** Waits for a child. */
export const deferring = operation('deferring', {
  keys: 'caller',
  payload,
  isolation: 'process',
  run: async () => defer([child(plain, {})]),
})

/** Never ends, in the worker's own process; says so when it is told to stop. */
export const hanging = operation('hanging', {
  keys: 'caller',
  payload,
  run: async ({ attempt, signal }) => {
    await begun(attempt)
    await once(signal, 'abort')
    await attempt.emit('hanging.told')
    return new Promise(() => {})
  },
})

async function waitAtGate({ attempt }: { attempt: Attempt }) {
  const client = new pg.Client({ connectionString: process.env['DATABASE_URL'] })
  await client.connect()
  await begun(attempt)
  await client.query('select pg_advisory_lock_shared(1)')
  await client.end()
  await attempt.transaction((own) => own.query('insert into ledger values ($1, $2)', [attempt.jobId, 'written']))
  return { attempt: attempt.attemptId }
}

/** Waits at a gate, in the worker's own process, and then writes to the ledger. */
export const gated = operation('gated', { keys: 'caller', payload, run: waitAtGate })

/** The same in a process of its own. */
export const gatedApart = operation('gated_apart', { keys: 'caller', payload, isolation: 'process', run: waitAtGate })

/** Blocks inside a transaction of its own until a lock is free, in a process of its own. */
export const holding = operation('holding', {
  payload,
  isolation: 'process',
  maxAttempts: 1,
  run: async ({ attempt }) => {
    await begun(attempt)
    await attempt.transaction((client) => client.query('select pg_advisory_xact_lock(2)'))
  },
})

export const failing = operation('failing', {
  keys: 'caller',
  payload,
  maxAttempts: 1,
  run: async () => {
    throw new Error('it does')
  },
})

/**
 * Writes one line to the ledger, by looking first whether an earlier attempt has: nothing but the fence keeps two
 * attempts from doing so at the same time.
 */
export const posting = operation('posting', {
  keys: 'caller',
  payload,
  leaseMs: 3_000,
  maxAttempts: 50,
  retry,
  run: async ({ attempt }) => {
    await attempt.transaction(async (client) => {
      const { rows } = await client.query('select from ledger where job_id = $1', [attempt.jobId])
      await client.query('select pg_sleep(0.01)')
      if (rows.length === 0)
        await client.query('insert into ledger values ($1, $2)', [attempt.jobId, attempt.attemptId])
    })
  },
})

export const operations = [
  posting,
  plain,
  busy,
  stubborn,
  polite,
  dying,
  talking,
  completing,
  deferring,
  hanging,
  gated,
  gatedApart,
  holding,
  failing,
]
