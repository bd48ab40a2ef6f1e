import type { EventFeed, JobEvent, Logger } from '@fencepost/engine'
import { Horizon } from './horizon.ts'
import { Pulse } from './pulse.ts'

/** Told of new events, in order of their ids but for one that was committed late. */
export type OnEvents = (events: readonly JobEvent[]) => void

interface Watch {
  listeners: Set<OnEvents>
  /** Ids above the floor that the listeners were told, or that were there before they came. */
  seen: Set<string>
  begun: boolean
}

/** New events of the jobs that somebody views: one statement for all of them, however many view. */
export class JobFeed {
  readonly #feed: EventFeed
  readonly #horizon = new Horizon()
  readonly #jobs = new Map<string, Watch>()
  readonly #pulse: Pulse

  constructor(feed: EventFeed, options: { pollMs: number; logger: Logger }) {
    this.#feed = feed
    this.#pulse = new Pulse({ ...options, restPerRead: 1, read: () => this.#read(), wanted: () => this.#jobs.size > 0 })
  }

  /** Nothing up to this id will be told any more. */
  get floor(): bigint {
    return this.#horizon.floor.id
  }

  /** Listens to a job. Once this has resolved, every event of the job can be read, or will be told. */
  async watch(jobId: string, listener: OnEvents): Promise<() => void> {
    const watch = this.#jobs.get(jobId) ?? { listeners: new Set(), seen: new Set(), begun: false }
    this.#jobs.set(jobId, watch)
    watch.listeners.add(listener)
    if (!watch.begun) await this.#pulse.nextRead()
    return () => {
      watch.listeners.delete(listener)
      if (watch.listeners.size === 0 && this.#jobs.get(jobId) === watch) this.#jobs.delete(jobId)
    }
  }

  trigger(): void {
    this.#pulse.trigger()
  }

  async close(): Promise<void> {
    await this.#pulse.close()
  }

  async #read(): Promise<void> {
    const jobs = new Map(this.#jobs)
    await this.#begin(jobs)
    const seen = [...jobs.values()].flatMap((watch) => [...watch.seen])
    const { events, snapshot } = await this.#feed.ofJobs([...jobs.keys()], this.floor, seen)
    const byJob = new Map<string, JobEvent[]>()
    for (const event of events) byJob.set(event.jobId, [...(byJob.get(event.jobId) ?? []), event])
    for (const [jobId, some] of byJob) {
      const watch = jobs.get(jobId)
      for (const { id } of some) watch?.seen.add(id)
      for (const listener of watch?.listeners ?? []) listener(some)
    }
    this.#horizon.saw(snapshot)
    for (const watch of jobs.values()) {
      for (const id of watch.seen) if (BigInt(id) <= this.floor) watch.seen.delete(id)
    }
  }

  // What is there when the first viewer of a job comes is for each viewer to read; what comes later is told.
  async #begin(jobs: ReadonlyMap<string, Watch>): Promise<void> {
    const fresh = [...jobs].filter(([, { begun }]) => !begun)
    if (fresh.length === 0) return
    const ids = fresh.map(([jobId]) => jobId)
    for (const { jobId, id } of await this.#feed.idsOfJobs(ids, this.floor)) jobs.get(jobId)?.seen.add(id)
    for (const [, watch] of fresh) watch.begun = true
  }
}
