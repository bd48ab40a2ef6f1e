// @ts-check
import { createPostgresBackend, DelayedError, runMigrations, withBackend } from 'bullmq'
import pg from 'pg'

const { Queue, Worker, FlowProducer } = withBackend(createPostgresBackend)
const name = 'bench'
const profiles = {
  drain: { concurrency: 24 },
  sleep: { concurrency: 100 },
  latency: { concurrency: 4 },
  hold: { concurrency: 100 },
}

export async function open({ url, poolSize, options }) {
  const connection = { connectionString: url, max: poolSize }
  /** @type {any} */
  let queue
  const opened = () => (queue ??= new Queue(name, { connection, defaultJobOptions: { removeOnComplete: true } }))
  return {
    batch: 1000,
    setup: async () => {
      const client = new pg.Client({ connectionString: url })
      await client.connect()
      await runMigrations(client)
      await client.end()
    },
    // It tries a job once unless told otherwise.
    enqueueMany: (nths, { startInSeconds }) =>
      opened().addBulk(
        nths.map((nth) => ({
          name: 'job',
          data: { nth },
          ...(startInSeconds > 0 ? { opts: { delay: startInSeconds * 1000 } } : {}),
        })),
      ),
    enqueueOne: (nth) => opened().add('job', { nth }),
    comeBack: async (job) => {
      await job.moveToDelayed(Date.now(), job.token)
      throw new DelayedError()
    },
    fanOut: async (children) => {
      const producer = new FlowProducer({ connection })
      await producer.add({
        name: 'parent',
        queueName: name,
        data: { nth: -1 },
        opts: { removeOnComplete: true },
        children: Array.from({ length: children }, (_, nth) => ({
          name: 'job',
          queueName: name,
          data: { nth },
          opts: { removeOnComplete: true },
        })),
      })
      await producer.close()
    },
    work: async (profile, handling) => {
      const worker = new Worker(name, (job) => handling.handle(job.data.nth, job), {
        connection: { ...connection, max: 20 },
        removeOnComplete: { count: 0 },
        ...profiles[profile],
        ...(options.lockDuration === undefined ? {} : options),
      })
      worker.on('error', () => {})
      await worker.waitUntilReady()
      return () => worker.close(true)
    },
    close: async () => queue?.close(),
  }
}
