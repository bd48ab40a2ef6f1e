import type { Attempt } from '../attempt/attempt.ts'
import type { ClaimAnswer } from '../engine.ts'
import type { Logger } from '../logger.ts'
import type { Pushed } from './wake-up.ts'

/** How long a job that was pushed waits for a place before it is left to other workers. */
const waitMs = 1_000

export interface PushedPorts {
  claimJob: (jobId: string) => Promise<ClaimAnswer>
  /** True when one more job may be claimed now. */
  hasRoom: () => boolean
  accept: (attempt: Attempt, claimedAt: number) => void
  /** The queue is to be looked at, now or as soon as there is room. */
  look: (queue: string) => void
  /** Tells others of a job that is due but has no handler here. */
  passOn: (jobId: string) => Promise<void>
}

/** Claims jobs that were pushed, one by one, and never more than the worker has room for. */
export class PushedClaims {
  readonly #ports: PushedPorts
  readonly #logger: Logger
  readonly #underway = new Set<Promise<Pushed>>()
  readonly #waiting = new Set<() => void>()
  #stopping = false

  constructor(ports: PushedPorts, logger: Logger) {
    this.#ports = ports
    this.#logger = logger
  }

  /** How many places are spoken for by claims that have not been decided. */
  get claiming(): number {
    return this.#underway.size
  }

  /** Decides a claim. Never throws. */
  async claim(jobId: string, queue: string): Promise<Pushed> {
    const deadline = performance.now() + waitMs
    while (!this.#stopping && !this.#ports.hasRoom()) {
      const left = deadline - performance.now()
      if (left <= 0) {
        // Others may be free for it. If none is, it is found here as soon as there is room.
        this.#ports.look(queue)
        return 'declined'
      }
      await this.#freed(left)
    }
    if (this.#stopping) return 'declined'
    const decided = this.#decide(jobId, queue)
    this.#underway.add(decided)
    return decided.finally(() => this.#underway.delete(decided))
  }

  /** A place has become free. */
  freed(): void {
    for (const wake of this.#waiting) wake()
  }

  /** Declines what is waiting, and resolves when nothing can be accepted any more. */
  async stop(): Promise<void> {
    this.#stopping = true
    this.freed()
    await Promise.all(this.#underway)
  }

  async #decide(jobId: string, queue: string): Promise<Pushed> {
    const claimedAt = performance.now()
    try {
      const answer = await this.#ports.claimJob(jobId)
      if (!answer.claimed) {
        await this.#ports.passOn(jobId)
        return 'not_claimed'
      }
      this.#ports.accept(answer.attempt, claimedAt)
      return 'claimed'
    } catch (error) {
      // Whether it was claimed is not known. The ordinary look goes on until Postgres answers, and leases do the rest.
      this.#logger.warn({ err: error, job_id: jobId }, 'claim_failed')
      this.#ports.look(queue)
      return 'not_claimed'
    }
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
