import { sql, type EngineDatabase } from '@fencepost/engine'
import { Horizon } from '../events/horizon.ts'
import { readSnapshot } from '../events/read.ts'
import { Histogram } from './histogram.ts'
import type { QueueLabels } from './queue-labels.ts'
import type { Sample } from './text.ts'

const bounds = [0.01, 0.05, 0.1, 0.5, 1, 5, 10, 30, 60, 300, 600, 1800, 3600, 21_600]
// A transaction that goes on for longer than this is not waited for, and not counted.
const patienceMs = 60_000

/**
 * What has ended since the server started, counted once: by the ids of the terminal events between the last floor and
 * the one before (see events/horizon.ts). Each look reads only what is new.
 */
export class Settled {
  readonly duration = new Histogram(bounds)
  readonly wait = new Histogram(bounds)
  readonly #database: EngineDatabase
  readonly #horizon = new Horizon({ settleMs: 1_000, markEveryMs: 0 })
  readonly #jobs = new Map<string, Sample>()
  readonly #queues: QueueLabels
  #staleWritebacks = 0
  #leaseExpiries = 0
  #upTo: bigint | undefined

  constructor(database: EngineDatabase, queues: QueueLabels) {
    this.#database = database
    this.#queues = queues
  }

  get jobs(): readonly Sample[] {
    return [...this.#jobs.values()]
  }

  get staleWritebacks(): number {
    return this.#staleWritebacks
  }

  get leaseExpiries(): number {
    return this.#leaseExpiries
  }

  async look(): Promise<void> {
    const snapshot = await readSnapshot(this.#database)
    this.#horizon.saw(snapshot)
    if (this.#upTo === undefined) {
      this.#upTo = snapshot.lastId
      return
    }
    const { id: floor, ts } = this.#horizon.floorWithin(patienceMs)
    if (floor <= this.#upTo || ts === undefined) return
    await this.#count(this.#upTo, floor)
    this.#upTo = floor
  }

  async #count(past: bigint, upTo: bigint): Promise<void> {
    const { t } = this.#database
    const between = (id: 'e.id' | 'completed_event_id') =>
      id === 'e.id'
        ? sql`e.id > ${String(past)}::bigint and e.id <= ${String(upTo)}::bigint`
        : sql`completed_event_id > ${String(past)}::bigint and completed_event_id <= ${String(upTo)}::bigint`
    const [ended, counted] = await Promise.all([
      this.#database.query<EndedRow>(
        'metrics.settled',
        sql`
        with ended as (
          select queue, operation, status, started_at, completed_at, locked_at, run_after from ${t.finishedJobs}
           where completed_at >= ${t.now} - ${this.#lookBackMs()} * interval '1 millisecond'
             and ${between('completed_event_id')}
          union all
          select queue, operation, status, started_at, completed_at, locked_at, run_after
            from ${t.storedEvents} e join ${t.finishedJobs} using (job_id)
           where ${between('e.id')} and e.event in ('job.completed', 'job.failed', 'job.cancelled')
        ),
        measured as (
          select queue, operation, status, extract(epoch from completed_at - started_at)::double precision as took,
                 -- greatest() passes over nulls: a job that was never claimed would have waited 0 seconds
                 case when locked_at is not null then greatest(extract(epoch from locked_at - run_after), 0) end
                   ::double precision as waited
            from ended
        )
        select queue, operation, status as outcome, width_bucket(took, ${bounds}::double precision[]) as took_bucket,
               width_bucket(waited, ${bounds}::double precision[]) as waited_bucket, count(*)::integer as count,
               sum(took) as took, sum(waited) as waited
          from measured group by 1, 2, 3, 4, 5`,
      ),
      this.#database.query<{ event: string; count: number }>(
        'metrics.events',
        sql`select event, count(*)::integer as count from ${t.storedEvents} e
             where ${between('e.id')} and event in ('job.fence_rejected', 'job.expired') group by event`,
      ),
    ])
    for (const row of ended) this.#add(row)
    const of = (name: string) => counted.find(({ event }) => event === name)?.count ?? 0
    this.#staleWritebacks += of('job.fence_rejected')
    this.#leaseExpiries += of('job.expired')
    this.#lookedAt = performance.now()
  }

  #lookedAt = performance.now()

  // The index finds what has ended lately; the ids say exactly what is new.
  #lookBackMs(): number {
    return Math.ceil(performance.now() - this.#lookedAt) + 2 * patienceMs
  }

  #add({ queue, operation, outcome, took_bucket: took, waited_bucket: waited, count, ...sums }: EndedRow): void {
    const key = `${operation} ${outcome}`
    const sample = this.#jobs.get(key) ?? { labels: { operation, outcome }, value: 0 }
    this.#jobs.set(key, { ...sample, value: sample.value + count })
    if (took !== null) this.duration.add({ operation, outcome }, took, count, sums.took ?? 0)
    if (waited !== null)
      this.wait.add({ queue: this.#queues.labelOf(queue), operation }, waited, count, sums.waited ?? 0)
  }
}

interface EndedRow {
  queue: string
  operation: string
  outcome: string
  took_bucket: number | null
  waited_bucket: number | null
  count: number
  took: number | null
  waited: number | null
}
