import { Batches } from '../batches.ts'
import type { Db } from '../database/database.ts'
import { isConnectionLost } from '../database/failure.ts'
import type { Fence } from '../lifecycle/outcome.ts'
import { listStepsOf, recordStepsOf, type CheckedStep, type Step } from './step.ts'

interface Waiting<Item, Answer> {
  item: Item
  resolve: (answer: Answer) => void
  reject: (error: unknown) => void
}

/** Calls that come together and are answered by one statement. */
class Together<Item, Answer> {
  readonly #batches: Batches<Waiting<Item, Answer>>
  readonly #answer: (items: readonly Item[]) => Promise<(item: Item) => Answer>

  constructor(answer: (items: readonly Item[]) => Promise<(item: Item) => Answer>, maxBatch: number) {
    this.#answer = answer
    this.#batches = new Batches((some) => this.#handle(some), maxBatch)
  }

  call(item: Item): Promise<Answer> {
    return new Promise((resolve, reject) => this.#batches.add({ item, resolve, reject }))
  }

  async #handle(some: readonly Waiting<Item, Answer>[]): Promise<void> {
    try {
      const answerOf = await this.#answer(some.map(({ item }) => item))
      for (const { item, resolve } of some) resolve(answerOf(item))
    } catch (error) {
      // What one of them is to blame for, the others must not pay for. Without a connection nobody is to blame, and
      // nobody knows whether the statement was applied.
      if (some.length > 1 && !isConnectionLost(error)) await Promise.all(some.map((one) => this.#handle([one])))
      else for (const { reject } of some) reject(error)
    }
  }
}

const maxBatch = 1_000

/** The steps of all attempts of an engine: what its handlers store, and read, at the same time is one statement. */
class StepsTogether {
  readonly #record: Together<{ fence: Fence; steps: readonly CheckedStep[] }, boolean>
  readonly #list: Together<string, Step[]>

  constructor(db: Db) {
    this.#record = new Together(async (items) => {
      const held = await recordStepsOf(db, items)
      return ({ fence }) => held.has(fence.attemptId)
    }, maxBatch)
    this.#list = new Together(async (jobIds) => {
      const steps = await listStepsOf(db, jobIds)
      return (jobId) => steps.get(jobId) ?? []
    }, maxBatch)
  }

  /** Stores a step result under the fence; false when the fence is lost. */
  record(fence: Fence, step: CheckedStep): Promise<boolean> {
    return this.#record.call({ fence, steps: [step] })
  }

  /** The step results of a job, of all its attempts, in order. */
  list(jobId: string): Promise<Step[]> {
    return this.#list.call(jobId)
  }
}

const engines = new WeakMap<Db, StepsTogether>()

/** The one that all attempts of an engine share, whose database this is. */
export function stepsTogether(db: Db): StepsTogether {
  const known = engines.get(db)
  if (known !== undefined) return known
  const made = new StepsTogether(db)
  engines.set(db, made)
  return made
}
