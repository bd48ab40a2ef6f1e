import type { Context } from '../context.ts'
import type { Claimed } from '../lifecycle/claim.ts'
import { completeChaining, completeMany, type ChainingCompletion, type Completion } from '../lifecycle/complete.ts'
import type { Deferral } from '../lifecycle/defer.ts'
import { fail, type Failure } from '../lifecycle/fail.ts'
import type { Settled, WrittenRow } from '../lifecycle/outcome.ts'
import { release, type Release } from '../lifecycle/release.ts'
import { backoffMs, retry, type Retry } from '../lifecycle/retry.ts'
import { retryLater, type Postponement } from '../lifecycle/retry-later.ts'
import type { Submission } from '../lifecycle/submission.ts'
import { isKeyed } from '../lifecycle/submit.ts'
import { timeOut, type TimeOut } from '../lifecycle/time-out.ts'
import { operationDefaults } from '../operation.ts'
import { afterwards } from './afterwards.ts'
import type { ErrorDetails } from './error-details.ts'
import { reject, type Verb } from './fence.ts'
import { completeAlone, deferAlone, failAlone } from './settle-alone.ts'
import { settlingOf } from './settling.ts'
import type { CheckedStep } from './step.ts'

/*
 * Writing what attempts came to, any number of them at once: one statement for each kind of outcome in the batch.
 *
 * The statements of a batch run side by side, each on a connection of its own. They cannot wait for each other: every
 * job is in one of them only, and a lock, a slot or a row of live_jobs belongs to one job. Within a statement, rows are
 * locked in the order of their ids. Parents are closed at the end, once for the whole batch.
 *
 * Each statement says which attempts it has written. The others are asked about: one that had settled in just this way
 * before, in a report whose answer was lost, has settled; any other has lost its fence. So a batch that is repeated,
 * whole or in parts, gives the same answers.
 */

/** What an attempt came to: computed first, from the handler alone; written second, as often as it takes. */
export type Outcome =
  | {
      kind: 'completed'
      result: string
      steps: readonly CheckedStep[]
      chain: readonly Submission[]
      /** By attempt.complete(): there is nothing left to write. */
      written?: true
    }
  | {
      kind: 'failed'
      error: string
      errorCode: string
      permanent: boolean
      steps: readonly CheckedStep[]
      /** The stack and the causes of what the handler threw. */
      details?: ErrorDetails | undefined
    }
  | { kind: 'retry_later'; reason: string; delaySeconds: number }
  | { kind: 'released'; reason: string }
  /** It took longer than its timeout. While the handler runs, its lock and slot stay closed. */
  | { kind: 'timed_out'; handlerRuns: boolean }
  | ({ kind: 'deferred' } & Deferral)

export type Failed = Extract<Outcome, { kind: 'failed' }>

export interface Settlement {
  claimed: Claimed
  outcome: Outcome
}

const settled: Settled = { settled: true }
const fenceLost: Settled = { settled: false, why: 'fence_lost' }

/** Writes one outcome under the fence. Repeating it, after an error, is safe and gives the same answer. */
export async function settle(context: Context, claimed: Claimed, outcome: Outcome): Promise<Settled> {
  const [answer] = await settleAll(context, [{ claimed, outcome }])
  return answer as Settled
}

/** Writes the outcomes of any number of attempts, each under its fence. Answers in order. */
export async function settleAll(context: Context, settlements: readonly Settlement[]): Promise<Settled[]> {
  const batch = new Batch(context)
  for (const { claimed, outcome } of settlements) batch.add(claimed, outcome)
  const lost = await batch.write()
  return settlements.map(({ claimed }) => (lost.has(claimed.attemptId) ? fenceLost : settled))
}

/** The attempts of one kind of outcome, and what their statement is given. */
class Kind<Item> {
  readonly claimed: Claimed[] = []
  readonly items: Item[] = []

  add(claimed: Claimed, item: Item): void {
    this.claimed.push(claimed)
    this.items.push(item)
  }
}

/** Attempts of one kind whose rows were not found. */
interface Unwritten {
  verb: Verb
  attempts: readonly Claimed[]
}

/** Outcomes sorted by what writes them. */
class Batch {
  readonly #context: Context
  readonly #completions = new Kind<Completion>()
  readonly #chains = new Kind<ChainingCompletion>()
  readonly #failures = new Kind<Failure>()
  readonly #retries = new Kind<Retry>()
  readonly #postponements = new Kind<Postponement>()
  readonly #releases = new Kind<Release>()
  readonly #timeOuts = new Kind<TimeOut>()
  readonly #alone: (() => Promise<Iterable<string>>)[] = []
  readonly #parents = new Set<string>()

  constructor(context: Context) {
    this.#context = context
  }

  add(claimed: Claimed, outcome: Outcome): void {
    const settling = settlingOf(claimed)
    switch (outcome.kind) {
      case 'completed':
        return outcome.written ? undefined : this.#addCompletion(claimed, outcome)
      case 'failed':
        return this.#addFailure(claimed, outcome)
      case 'retry_later':
        return this.#postponements.add(claimed, { ...settling, ...outcome })
      case 'released':
        return this.#releases.add(claimed, { ...settling, reason: outcome.reason })
      case 'timed_out':
        this.#ends(claimed)
        return this.#timeOuts.add(claimed, { ...settling, handlerRuns: outcome.handlerRuns })
      case 'deferred':
        if (outcome.children.length > 0 || outcome.then !== undefined) {
          this.#alone.push(() => this.#defer(claimed, outcome))
        } else this.#addCompletion(claimed, { kind: 'completed', result: outcome.result, steps: [], chain: [] })
    }
  }

  /** Writes all of it; the attempts that have lost their fence. */
  async write(): Promise<Set<string>> {
    // All of them are waited for, also after an error: whoever repeats the batch then meets none of its own statements.
    const together = await Promise.allSettled([
      this.#complete(),
      this.#chain(),
      this.#together('fail', this.#failures, fail),
      this.#together('retry', this.#retries, retry),
      this.#together('retry_later', this.#postponements, retryLater),
      this.#together('release', this.#releases, release),
      this.#together('fail', this.#timeOuts, timeOut),
    ])
    const lost = await this.#rejected(together.flatMap((kind) => (kind.status === 'fulfilled' ? kind.value : [])))
    // What takes locks comes after what frees them.
    const [alone] = await Promise.allSettled([this.#eachAlone(lost)])
    await afterwards(this.#context, this.#parents)
    for (const part of [...together, alone]) if (part.status === 'rejected') throw part.reason
    return lost
  }

  #addCompletion(claimed: Claimed, outcome: Extract<Outcome, { kind: 'completed' }>): void {
    const { result, steps, chain } = outcome
    const completion = { ...settlingOf(claimed), result }
    this.#ends(claimed)
    if (steps.length > 0 || chain.some(isKeyed)) {
      this.#alone.push(async () =>
        this.#lostOf('complete', claimed, await completeAlone(this.#context, claimed, outcome)),
      )
    } else if (chain.length > 0) this.#chains.add(claimed, { ...completion, links: chain })
    else this.#completions.add(claimed, completion)
  }

  #addFailure(claimed: Claimed, outcome: Failed): void {
    const { error, errorCode, permanent, steps, details } = outcome
    const again = !permanent && claimed.attempts < claimed.maxAttempts
    const policy = this.#context.operations.get(claimed.operation)?.retry ?? operationDefaults.retry
    const delayMs = backoffMs(policy, claimed.attempts)
    const failure = { ...settlingOf(claimed), error, errorCode, details }
    if (!again) this.#ends(claimed)
    if (steps.length > 0) {
      const write = () => failAlone(this.#context, claimed, outcome, again ? delayMs : undefined)
      this.#alone.push(async () => this.#lostOf(again ? 'retry' : 'fail', claimed, await write()))
    } else if (again) this.#retries.add(claimed, { ...failure, delayMs })
    else this.#failures.add(claimed, failure)
  }

  #ends({ parentJobId }: Claimed): void {
    if (parentJobId !== undefined) this.#parents.add(parentJobId)
  }

  // Only how many were written is read, which is much cheaper. With one missing, all are asked about.
  async #complete(): Promise<Unwritten> {
    const { claimed, items } = this.#completions
    const written = await completeMany(this.#context.database, items)
    return { verb: 'complete', attempts: written === items.length ? [] : claimed }
  }

  async #chain(): Promise<Unwritten> {
    const { claimed, items } = this.#chains
    const chained = await completeChaining(this.#context.database, items)
    for (const { attemptId, links } of items) this.#context.wake.submitted(links, chained.get(attemptId) ?? [])
    return { verb: 'complete', attempts: claimed.filter(({ attemptId }) => !chained.has(attemptId)) }
  }

  async #together<Item>(
    verb: Verb,
    { claimed, items }: Kind<Item>,
    write: (db: Context['database'], items: readonly Item[]) => Promise<WrittenRow[]>,
  ): Promise<Unwritten> {
    const written = new Set((await write(this.#context.database, items)).map((row) => row.attempt_id))
    if (verb === 'release' && claimed.length > 0) this.#context.wake.jobs(claimed)
    return { verb, attempts: claimed.filter(({ attemptId }) => !written.has(attemptId)) }
  }

  // One kind after another: several attempts at one job may be among them, and their events are to be in order.
  async #rejected(unwritten: readonly Unwritten[]): Promise<Set<string>> {
    const lost = new Set<string>()
    for (const { verb, attempts } of unwritten) {
      for (const attemptId of await reject(this.#context, verb, attempts)) lost.add(attemptId)
    }
    return lost
  }

  // One after another: each takes a connection for several statements.
  async #eachAlone(lost: Set<string>): Promise<void> {
    for (const write of this.#alone) for (const attemptId of await write()) lost.add(attemptId)
  }

  async #defer(claimed: Claimed, outcome: Extract<Outcome, { kind: 'deferred' }>): Promise<Iterable<string>> {
    const deferred = await deferAlone(this.#context, claimed, outcome)
    this.#ends(claimed) // it may have, with no child left to wait for
    if (typeof deferred === 'boolean') return this.#lostOf('defer', claimed, deferred)
    const { settled } = await settle(this.#context, claimed, deferred)
    return settled ? [] : [claimed.attemptId]
  }

  async #lostOf(verb: Verb, claimed: Claimed, written: boolean): Promise<Iterable<string>> {
    return written ? [] : reject(this.#context, verb, [claimed])
  }
}
