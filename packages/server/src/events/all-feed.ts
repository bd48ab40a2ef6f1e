import type { EventFeed, JobEvent, Logger } from '@fencepost/engine'
import { Horizon } from './horizon.ts'
import type { OnEvents } from './job-feed.ts'
import { Pulse } from './pulse.ts'

/** A transition that takes longer than this to commit is not told; its job's own events have it. */
const latelyMs = 60_000
/** How far back one who resumes is given what he has missed. */
const resumeSeconds = 600
// How many ids below the last one may still be uncommitted when the first viewer comes.
const startMargin = 10_000n

/** New transitions of all jobs, for dashboards. */
export class AllFeed {
  readonly #feed: EventFeed
  readonly #listeners = new Set<OnEvents>()
  readonly #pulse: Pulse
  #horizon = new Horizon()
  #seen = new Set<string>()
  /** Where it began to read; undefined while nobody views. */
  #start: bigint | undefined

  constructor(feed: EventFeed, options: { pollMs: number; logger: Logger }) {
    this.#feed = feed
    this.#pulse = new Pulse({
      ...options,
      restPerRead: 4,
      read: () => this.#read(),
      wanted: () => this.#listeners.size > 0,
    })
  }

  /** Nothing up to this id will be told any more. */
  get floor(): bigint {
    const { id } = this.#horizon.floorWithin(latelyMs)
    return id > (this.#start ?? 0n) ? id : (this.#start ?? 0n)
  }

  /** Listens. Once this has resolved, every transition that commits from now on is told. */
  async watch(listener: OnEvents): Promise<() => void> {
    this.#listeners.add(listener)
    if (this.#start === undefined) await this.#pulse.nextRead()
    return () => {
      this.#listeners.delete(listener)
      if (this.#listeners.size === 0) this.#start = undefined
    }
  }

  /** The transitions of the last minutes past an id. */
  async since(past: bigint): Promise<JobEvent[]> {
    return (await this.#feed.lately({ past, since: undefined, secondsAgo: resumeSeconds }, [])).events
  }

  trigger(): void {
    this.#pulse.trigger()
  }

  async close(): Promise<void> {
    await this.#pulse.close()
  }

  async #read(): Promise<void> {
    if (this.#start === undefined) {
      await this.#begin()
      return
    }
    const { ts } = this.#horizon.floorWithin(latelyMs)
    const from = { past: this.floor, since: ts, secondsAgo: latelyMs / 1000 }
    const { events, snapshot } = await this.#feed.lately(from, [...this.#seen])
    for (const { id } of events) this.#seen.add(id)
    if (events.length > 0) for (const listener of this.#listeners) listener(events)
    this.#horizon.saw(snapshot)
    for (const id of this.#seen) if (BigInt(id) <= this.floor) this.#seen.delete(id)
  }

  async #begin(): Promise<void> {
    const { lastId } = await this.#feed.state()
    const past = lastId > startMargin ? lastId - startMargin : 0n
    const there = await this.#feed.lately({ past, since: undefined, secondsAgo: latelyMs / 1000 }, [])
    this.#horizon = new Horizon()
    this.#seen = new Set(there.events.map(({ id }) => id))
    this.#start = past
  }
}
