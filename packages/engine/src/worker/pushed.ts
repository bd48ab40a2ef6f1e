import type { Attempt } from '../attempt/attempt.ts'
import type { Logger } from '../logger.ts'
import type { Pushed } from './wake-up.ts'

/** How long a job that was pushed waits for a place before it is left to other workers. */
const waitMs = 500

export interface PushedPorts {
  claimJobs: (jobIds: readonly string[]) => Promise<Attempt[]>
  /** True when one more job may be claimed now. */
  hasRoom: () => boolean
  accept: (attempt: Attempt, claimedAt: number) => void
  /** The queue is to be looked at, now or as soon as there is room. */
  look: (queue: string) => void
  /** Tells others of jobs that are due but have no handler here. */
  passOn: (jobIds: readonly string[]) => Promise<void>
  /** Places that were spoken for are free again: the jobs were somebody else's. */
  freed: () => void
}

interface Asked {
  jobId: string
  queue: string
  decide: (pushed: Pushed) => void
}

/**
 * Claims jobs that were pushed, by their ids, and never more than the worker has room for. The first goes at once; what
 * arrives while a claim is under way goes with the next.
 */
export class PushedClaims {
  readonly #ports: PushedPorts
  readonly #logger: Logger
  readonly #waiting = new Set<() => void>()
  #asked: Asked[] = []
  #undecided = 0
  #asking: Promise<void> | undefined
  #stopping = false

  constructor(ports: PushedPorts, logger: Logger) {
    this.#ports = ports
    this.#logger = logger
  }

  /** How many places are spoken for by claims that have not been decided. */
  get claiming(): number {
    return this.#undecided
  }

  /** Decides a claim. Never rejects. */
  async claim(jobId: string, queue: string): Promise<Pushed> {
    const deadline = performance.now() + waitMs
    while (!this.#stopping && !this.#ports.hasRoom()) {
      const leftMs = deadline - performance.now()
      if (leftMs <= 0) {
        // Others may be free for it. If none is, it is found here as soon as there is room.
        this.#ports.look(queue)
        return 'declined'
      }
      await this.#freed(leftMs)
    }
    if (this.#stopping) return 'declined'
    this.#undecided += 1
    return new Promise((decide) => {
      this.#asked.push({ jobId, queue, decide })
      this.#asking ??= this.#askAll()
    })
  }

  /** A place has become free. */
  freed(): void {
    for (const wake of this.#waiting) wake()
  }

  /** Declines what is waiting, and resolves when nothing can be accepted any more. */
  async stop(): Promise<void> {
    this.#stopping = true
    this.freed()
    await this.#asking
  }

  async #askAll(): Promise<void> {
    await new Promise((resolve) => setImmediate(resolve)) // so that messages which come together are claimed together
    while (this.#asked.length > 0) {
      const some = this.#asked
      this.#asked = []
      const attempts = await this.#ask(some)
      for (const { jobId, decide } of some) {
        this.#undecided -= 1
        decide(attempts.delete(jobId) ? 'claimed' : 'not_claimed')
      }
      this.freed()
      this.#ports.freed()
    }
    this.#asking = undefined
  }

  async #ask(some: readonly Asked[]): Promise<Set<string>> {
    const jobIds = some.map(({ jobId }) => jobId)
    const claimedAt = performance.now()
    const mine = new Set<string>()
    try {
      for (const attempt of await this.#ports.claimJobs(jobIds)) {
        mine.add(attempt.jobId)
        this.#ports.accept(attempt, claimedAt)
      }
      const others = jobIds.filter((jobId) => !mine.has(jobId))
      if (others.length > 0) await this.#ports.passOn(others)
    } catch (error) {
      // Whether they were claimed is not known. The ordinary look goes on until Postgres answers, and leases do the rest.
      this.#logger.warn({ err: error, jobs: some.length }, 'claim_failed')
      for (const queue of new Set(some.map((one) => one.queue))) this.#ports.look(queue)
    }
    return mine
  }

  #freed(timeoutMs: number): Promise<void> {
    return new Promise((resolve) => {
      const wake = () => {
        clearTimeout(timer)
        this.#waiting.delete(wake)
        resolve()
      }
      const timer = setTimeout(wake, timeoutMs)
      this.#waiting.add(wake)
    })
  }
}
