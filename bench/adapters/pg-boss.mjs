// @ts-check
import { PgBoss } from 'pg-boss'

const queue = 'bench'

// Polling is only its backstop here, but half a second is the least it takes, so it gets that everywhere.
const polling = { pollingIntervalSeconds: 0.5, notifyPollingIntervalSeconds: 0.5 }
const profiles = {
  drain: { batchSize: 1000, localConcurrency: 2, burstWhenBatchFull: true, ...polling },
  sleep: { batchSize: 1000, localConcurrency: 2, burstWhenBatchFull: true, ...polling },
  latency: { batchSize: 1, localConcurrency: 4, ...polling },
  hold: { batchSize: 100, localConcurrency: 1, ...polling },
}
/** Of a batch it hands out, how many handlers run at once: 100 over its two workers. */
const atOnce = { sleep: 50 }

export async function open({ url, poolSize, options }) {
  const boss = new PgBoss({
    connectionString: url,
    max: poolSize,
    schedule: false,
    supervise: options.supervise ?? false,
    ...(options.superviseSeconds === undefined
      ? {}
      : { superviseIntervalSeconds: options.superviseSeconds, monitorIntervalSeconds: options.superviseSeconds }),
    ...(options.flowSeconds === undefined ? {} : { flowIntervalSeconds: options.flowSeconds }),
    useListenNotify: true,
  })
  boss.on('error', () => {})
  await boss.start()
  return {
    batch: 5000,
    setup: () =>
      boss.createQueue(queue, {
        partition: true,
        notify: true,
        ...(options.heartbeatSeconds === undefined ? {} : { heartbeatSeconds: options.heartbeatSeconds }),
      }),
    enqueueMany: (nths, { startInSeconds, once }) =>
      boss.insert(
        queue,
        nths.map((nth) => ({
          data: { nth },
          ...(startInSeconds > 0 ? { startAfter: startInSeconds } : {}),
          ...(once ? { retryLimit: 0 } : {}),
        })),
        { returnId: false },
      ),
    enqueueOne: (nth) => boss.send(queue, { nth }),
    enqueueWith: (client, nth) =>
      boss.send(queue, { nth }, { db: { executeSql: (text, values) => client.query(text, values) } }),
    fanOut: (children) =>
      boss.flow([
        ...Array.from({ length: children }, (_, nth) => ({ ref: `child-${nth}`, name: queue, data: { nth } })),
        {
          ref: 'parent',
          name: queue,
          data: { nth: -1 },
          dependsOn: Array.from({ length: children }, (_, nth) => `child-${nth}`),
        },
      ]),
    work: async (profile, handling) => {
      await boss.work(queue, profiles[profile], (jobs) =>
        handling.handleMany(
          jobs.map((job) => job.data.nth),
          atOnce[profile] ?? Infinity,
        ),
      )
      return () => boss.offWork(queue, { wait: false })
    },
    close: () => boss.stop({ graceful: false, close: true }),
  }
}
