import { FencepostError } from '../errors.ts'
import type { Submission } from './submission.ts'
import type { Submitted } from './submit.ts'

interface Waiting {
  submission: Submission
  resolve: (answer: Submitted) => void
  reject: (error: unknown) => void
}

type Write = (submissions: readonly Submission[]) => Promise<Submitted[]>

const maxBatch = 500
const maxWriting = 2

/**
 * Submissions that are made at the same time are written in one statement, so that they share its commit. A lone one
 * goes at once; what arrives while writes are under way goes with the next.
 */
export class SubmitTogether {
  readonly #write: Write
  #waiting: Waiting[] = []
  #scheduled = false
  #writing = 0

  constructor(write: Write) {
    this.#write = write
  }

  /** Resolves when the job is committed, or refused. */
  async submit(submission: Submission): Promise<Submitted> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ submission, resolve, reject })
      this.#schedule()
    })
  }

  #schedule(): void {
    if (this.#scheduled || this.#waiting.length === 0 || this.#writing >= maxWriting) return
    this.#scheduled = true
    // One turn of the event loop, so that callers who come together are written together.
    setImmediate(() => {
      this.#scheduled = false
      void this.#writeSome()
      this.#schedule()
    })
  }

  async #writeSome(): Promise<void> {
    const some = this.#waiting.splice(0, maxBatch)
    this.#writing += 1
    await this.#writeAll(some)
    this.#writing -= 1
    this.#schedule()
  }

  async #writeAll(some: readonly Waiting[]): Promise<void> {
    try {
      const answers = await this.#write(some.map(({ submission }) => submission))
      for (const [nth, { resolve }] of some.entries()) resolve(answers[nth] as Submitted)
    } catch (error) {
      // One that Postgres will not take must not keep out those it happened to come with.
      if (some.length > 1 && !(error instanceof FencepostError)) {
        for (const one of some) await this.#writeAll([one])
      } else {
        for (const { reject } of some) reject(error)
      }
    }
  }
}
