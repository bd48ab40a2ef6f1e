// @ts-check
import { child, defer, openEngine, operation, RetryLater } from '@fencepost/engine'

// Ours: fence, history and events as they always are; there is no setting that turns them off.

/** @type {Record<string, import('@fencepost/engine').WorkOptions>} */
const profiles = {
  drain: { concurrency: 3000 },
  sleep: { concurrency: 100 },
  latency: { concurrency: 10 },
  hold: { concurrency: 100 },
}

/** Any JSON. The peers check no payloads either. */
const anything = { '~standard': { version: 1, vendor: 'bench', validate: (value) => ({ value }) } }

export async function open({ url, poolSize, options }) {
  /** @type {import('./serve.mjs').Handling | undefined} */
  let handling
  const job = operation('job', {
    payload: /** @type {any} */ (anything),
    ...(options.leaseMs === undefined ? {} : { leaseMs: options.leaseMs }),
    run: async ({ payload, attempt }) => handling?.handle(payload.nth, attempt),
  })
  const parent = operation('parent', {
    payload: /** @type {any} */ (anything),
    run: async ({ payload }) => defer(Array.from({ length: payload.children }, (_, nth) => child(job, { nth }))),
  })
  const engine = await openEngine({
    database: url,
    operations: [job, parent],
    maxConnections: poolSize,
    ...(options.durableClaims === undefined ? {} : { durableClaims: options.durableClaims }),
  })
  return {
    batch: 5000,
    setup: async () => {}, // opening it has migrated
    enqueueMany: (nths, { startInSeconds, once }) => {
      const wanted = {
        ...(startInSeconds > 0 ? { delayMs: startInSeconds * 1000 } : {}),
        ...(once ? { maxAttempts: 1 } : {}),
      }
      return engine.submitMany(
        job,
        nths.map((nth) => ({ payload: { nth }, options: wanted })),
      )
    },
    enqueueOne: (nth) => engine.submit(job, { nth }),
    enqueueWith: (client, nth) => engine.submit(job, { nth }, { client }),
    committed: () => engine.wake(),
    chain: (attempt, nth) => attempt.chain(job, { nth }),
    comeBack: async () => {
      throw new RetryLater('once more', 0)
    },
    fanOut: (children) => engine.submit(parent, { children }),
    work: async (profile, wanted) => {
      handling = wanted
      const controller = new AbortController()
      const working = engine.work({
        ...profiles[profile],
        ...(options.sweepMs === undefined ? {} : { sweepMs: options.sweepMs }),
        signal: controller.signal,
      })
      return async () => {
        controller.abort()
        await working
      }
    },
    close: () => engine.close(),
  }
}
