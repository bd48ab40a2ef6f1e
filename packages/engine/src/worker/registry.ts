import { hostname } from 'node:os'
import type { Context } from '../context.ts'
import { sql } from '../database/sql.ts'
import { version } from '../version.ts'

/** A worker process as others see it. */
export interface WorkerInfo {
  workerId: string
  host: string
  pid: number
  version: string
  operations: string[]
  concurrency: number
  startedAt: string
  seenAt: string
  /** True when it has not been seen for so long that it must be taken for dead. */
  lost: boolean
}

const seenEveryMs = 30_000
/** Saying so takes no time; a connection that has not answered by then is dead. */
const answerMs = 5_000
/** A worker not seen for this long is lost; one lost for a day is forgotten. */
const lostAfterSeconds = 60
const forgottenAfterSeconds = 86_400

/** Keeps this worker's row in the registry; the answer takes it out again. */
export async function register(
  context: Context,
  worker: { workerId: string; operations: readonly string[]; queues: readonly string[]; concurrency: number },
): Promise<() => Promise<void>> {
  const { database, logger } = context
  const { t } = database
  const announce = async () => {
    try {
      await database.query(
        'register',
        sql`
        with forgotten as (
          delete from ${t.workers} where seen_at < ${t.now} - ${forgottenAfterSeconds} * interval '1 second'
        )
        insert into ${t.workers} (worker_id, host, pid, version, operations, queues, concurrency, started_at, seen_at)
        values (${worker.workerId}, ${hostname()}, ${process.pid}, ${version}, ${worker.operations}, ${worker.queues},
                ${worker.concurrency}, ${t.now}, ${t.now})
        on conflict (worker_id) do update
           set seen_at = excluded.seen_at, host = excluded.host, pid = excluded.pid, version = excluded.version,
               operations = excluded.operations, queues = excluded.queues, concurrency = excluded.concurrency`,
        answerMs,
      )
    } catch (error) {
      logger.warn({ err: error }, 'worker_not_registered')
    }
  }
  let announced = announce()
  await announced
  const timer = setInterval(() => {
    announced = announce()
  }, seenEveryMs)
  return async () => {
    clearInterval(timer)
    await announced // or it would be back afterwards
    try {
      const own = sql`delete from ${t.workers} where worker_id = ${worker.workerId}`
      await database.query('unregister', own, answerMs)
    } catch (error) {
      logger.warn({ err: error }, 'worker_not_unregistered')
    }
  }
}

/** All workers, those seen last first. */
export async function listWorkers({ database }: Context): Promise<WorkerInfo[]> {
  const { t } = database
  const rows = await database.query<{
    worker_id: string
    host: string
    pid: number
    version: string
    operations: string[]
    concurrency: number
    started_at: string
    seen_at: string
    lost: boolean
  }>(
    'workers',
    sql`select worker_id, host, pid, version, operations, concurrency, started_at, seen_at,
               seen_at < ${t.now} - ${lostAfterSeconds} * interval '1 second' as lost
          from ${t.workers} order by seen_at desc, worker_id`,
  )
  return rows.map((row) => ({
    workerId: row.worker_id,
    host: row.host,
    pid: row.pid,
    version: row.version,
    operations: row.operations,
    concurrency: row.concurrency,
    startedAt: row.started_at,
    seenAt: row.seen_at,
    lost: row.lost,
  }))
}
