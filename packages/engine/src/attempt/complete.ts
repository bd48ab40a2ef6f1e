import type { Context } from '../context.ts'
import { PermanentError } from '../errors.ts'
import type { Attempt } from './attempt.ts'
import { outcomeOf } from './run.ts'
import { afterwards } from './afterwards.ts'
import type { Outcome } from './settle.ts'
import { completeIn } from './settle-alone.ts'
import { holdFence, type TransactionClient } from './transaction.ts'

export type Completed = Extract<Outcome, { kind: 'completed' }>

/**
 * A handler's last transaction: what `work` writes, the end of its job and the jobs it chained are one commit. The fence
 * is held from the first statement on, so nobody can end the attempt in between. Undefined when it was lost before.
 */
export async function completeWith<T>(
  context: Context,
  attempt: Attempt,
  work: (client: TransactionClient) => Promise<T>,
): Promise<{ value: T; outcome: Completed } | undefined> {
  const done = await context.database.clientTransaction('complete', async (db, client) => {
    if (!(await holdFence(db, attempt))) return undefined
    const value = await work(client)
    const outcome = await outcomeOf(context, attempt, value)
    if (outcome.kind !== 'completed') {
      throw new PermanentError(
        `Job ${attempt.jobId} defers inside attempt.complete(); return defer() from the handler instead.`,
      )
    }
    return { value, outcome, ended: await completeIn(db, attempt.claimed, outcome) }
  })
  if (done === undefined) return undefined
  const { value, outcome, ended } = done
  context.wake.submitted(outcome.chain, ended.chained)
  await afterwards(context, [attempt.claimed.parentJobId])
  return { value, outcome: { ...outcome, written: true } }
}
