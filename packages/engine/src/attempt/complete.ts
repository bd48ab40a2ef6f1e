import type { Context } from '../context.ts'
import { PermanentError } from '../errors.ts'
import type { Attempt } from './attempt.ts'
import { outcomeOf } from './run.ts'
import { afterwards } from './afterwards.ts'
import type { Outcome } from './settle.ts'
import { completeIn } from './settle-alone.ts'
import { holdFence, type TransactionClient } from './transaction.ts'

export type Completed = Extract<Outcome, { kind: 'completed' }>

/** A completion that is about to be committed, or has been. */
export interface Completing<T> {
  value: T
  outcome: Completed
  /** The jobs that it chains, by id. */
  chained: readonly (string | undefined)[]
}

/**
 * A handler's last transaction: what `work` writes, the end of its job and the jobs it chained are one commit. The fence
 * is held from the first statement on, so nobody can end the attempt in between. Undefined when it was lost before.
 * `sending` is called when all is done but the commit.
 */
export async function completeWith<T>(
  context: Context,
  attempt: Attempt,
  work: (client: TransactionClient) => Promise<T>,
  sending: (completing: Completing<T>) => void,
): Promise<Completing<T> | undefined> {
  return context.database.clientTransaction('complete', async (db, client) => {
    if (!(await holdFence(db, attempt))) return undefined
    const value = await work(client)
    const outcome = await outcomeOf(context, attempt, value)
    if (outcome.kind !== 'completed') {
      throw new PermanentError(
        `Job ${attempt.jobId} defers inside attempt.complete(); return defer() from the handler instead.`,
      )
    }
    const { chained } = await completeIn(db, attempt.claimed, outcome)
    const completing = { value, outcome, chained }
    sending(completing)
    return completing
  })
}

/** Tells of the jobs it has chained, and closes its parent; once it is known to be committed. */
export async function announce(
  context: Context,
  { claimed }: Attempt,
  { outcome, chained }: Completing<unknown>,
): Promise<void> {
  context.wake.submitted(outcome.chain, chained)
  await afterwards(context, [claimed.parentJobId])
}
