// @ts-check
import { Logger, makeWorkerUtils, run } from 'graphile-worker'
import pg from 'pg'

// The configuration of its own performance page: local queue, batched completion, prepared statements, no named queues.
const batched = (concurrentJobs) => ({
  concurrentJobs,
  maxPoolSize: concurrentJobs + 1,
  localQueue: { size: 500, refetchDelay: { durationMs: 10 } },
  completeJobBatchDelay: 0,
  failJobBatchDelay: 0,
  preparedStatements: true,
})

const profiles = {
  drain: batched(10),
  sleep: batched(100),
  // Nothing is fetched ahead when idle, so the local queue would only be in the way.
  latency: { concurrentJobs: 4, maxPoolSize: 10, preparedStatements: true },
  hold: { ...batched(100), maxPoolSize: 20 },
}

const logger = new Logger(() => () => {})

export async function open({ url, poolSize }) {
  const pool = (max) => {
    const made = new pg.Pool({ connectionString: url, max })
    made.on('error', () => {})
    made.on('connect', (client) => client.on('error', () => {}))
    return made
  }
  const pgPool = pool(poolSize)
  /** @type {pg.Pool | undefined} */
  let workerPool
  const utils = await makeWorkerUtils({ pgPool, logger })
  const spec = (nth, { startInSeconds, once }) => ({
    identifier: 'job',
    payload: { nth },
    ...(once ? { maxAttempts: 1 } : {}),
    ...(startInSeconds > 0 ? { runAt: new Date(Date.now() + startInSeconds * 1000) } : {}),
  })
  return {
    batch: 5000,
    setup: () => utils.migrate(),
    enqueueMany: (nths, how) => utils.addJobs(nths.map((nth) => spec(nth, how))),
    enqueueOne: (nth) => utils.addJob('job', { nth }),
    enqueueWith: (client, nth) =>
      client.query('select graphile_worker.add_job($1, $2::json)', ['job', JSON.stringify({ nth })]),
    takeForDead: ({ workerIds }) => utils.forceUnlockWorkers(workerIds),
    // Its runner has a pool of its own, empty at first; the others have connections from being opened.
    getReady: async (profile) => {
      const { maxPoolSize } = profiles[profile]
      const made = (workerPool = pool(maxPoolSize))
      const clients = await Promise.all(Array.from({ length: maxPoolSize }, () => made.connect()))
      for (const client of clients) client.release()
    },
    work: async (profile, handling) => {
      const preset = { worker: profiles[profile] }
      workerPool ??= pool(preset.worker.maxPoolSize)
      const runner = await run({
        preset,
        pgPool: workerPool,
        logger,
        noHandleSignals: true,
        parsedCronItems: [],
        taskList: { job: (payload) => handling.handle(payload.nth) },
      })
      return async () => {
        await runner.stop()
        await workerPool?.end()
      }
    },
    close: async () => {
      await utils.release()
      await pgPool.end()
    },
  }
}
