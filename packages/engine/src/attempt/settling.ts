import type { Claimed } from '../lifecycle/claim.ts'
import type { Settling } from '../lifecycle/finish.ts'

/** The attempt as the statements that settle it want it. */
export function settlingOf({ jobId, attemptId, lockKey, slotKey }: Claimed): Settling {
  return { jobId, attemptId, hasKeys: lockKey !== undefined || slotKey !== undefined }
}
