import type { EndedJobs, Engine } from '@fencepost/engine'
import { Horizon } from '../events/horizon.ts'
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
  readonly #engine: Engine
  readonly #horizon = new Horizon({ settleMs: 1_000, markEveryMs: 0 })
  readonly #jobs = new Map<string, Sample>()
  readonly #queues: QueueLabels
  #staleWritebacks = 0
  #leaseExpiries = 0
  #runAgains = 0
  #timeouts = 0
  #unstarted = 0
  #upTo: bigint | undefined

  constructor(engine: Engine, queues: QueueLabels) {
    this.#engine = engine
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

  get runAgains(): number {
    return this.#runAgains
  }

  get timeouts(): number {
    return this.#timeouts
  }

  get unstarted(): number {
    return this.#unstarted
  }

  async look(): Promise<void> {
    const snapshot = await this.#engine.feed.state()
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
    const { ended, rejected, expired, timedOut, unstarted, ranAgain } = await this.#engine.endedBetween({
      past,
      upTo,
      withinMs: this.#lookBackMs(),
      bounds,
    })
    for (const one of ended) this.#add(one)
    this.#staleWritebacks += rejected
    this.#leaseExpiries += expired
    this.#runAgains += ranAgain
    this.#timeouts += timedOut
    this.#unstarted += unstarted
    this.#lookedAt = performance.now()
  }

  #lookedAt = performance.now()

  // The index finds what has ended lately; the ids say exactly what is new.
  #lookBackMs(): number {
    return Math.ceil(performance.now() - this.#lookedAt) + 2 * patienceMs
  }

  #add({ queue, operation, outcome, count, took, waited }: EndedJobs): void {
    const key = `${operation} ${outcome}`
    const sample = this.#jobs.get(key) ?? { labels: { operation, outcome }, value: 0 }
    this.#jobs.set(key, { ...sample, value: sample.value + count })
    if (took !== undefined) this.duration.add({ operation, outcome }, took.bucket, count, took.seconds)
    if (waited !== undefined) {
      this.wait.add({ queue: this.#queues.labelOf(queue), operation }, waited.bucket, count, waited.seconds)
    }
  }
}
