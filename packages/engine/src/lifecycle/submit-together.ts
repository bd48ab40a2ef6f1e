import { Batches } from '../batches.ts'
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

/** Submissions that are made at the same time are written in one statement, so that they share its commit. */
export class SubmitTogether {
  readonly #write: Write
  readonly #batches = new Batches<Waiting>((some) => this.#writeAll(some), maxBatch)

  constructor(write: Write) {
    this.#write = write
  }

  /** Resolves when the job is committed, or refused. */
  async submit(submission: Submission): Promise<Submitted> {
    return new Promise((resolve, reject) => {
      this.#batches.add({ submission, resolve, reject })
    })
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
