import { Attempt } from '../src/attempt/attempt.ts'
import type { Context } from '../src/context.ts'
import type { Claimed } from '../src/lifecycle/claim.ts'

let made = 0

/** An attempt that no database knows of, for what only holds attempts and passes them on. */
export function madeUpAttempt(leaseMs = 30_000): Attempt {
  made += 1
  const claimed: Partial<Claimed> = {
    jobId: `job ${made}`,
    attemptId: `attempt ${made}`,
    leaseMs,
    operation: 'made_up',
  }
  return new Attempt({} as Context, { queue: 'default', attempts: 1, maxAttempts: 3, ...claimed } as Claimed)
}
