import type { Submitted } from '@fencepost/engine'
import { ApiError } from '../error.ts'

type Refused = Extract<Submitted, { submitted: false }>
/** What keeps a job out, whichever call was to submit it. */
type Conflict = Refused extends infer One ? (One extends Refused ? Omit<One, 'submitted'> : never) : never

/** The refusal of a job that cannot be submitted. */
export function conflictOf(conflict: Conflict): ApiError {
  switch (conflict.why) {
    case 'locked':
      return new ApiError('lock_held', `Job ${conflict.holder.jobId} holds the lock ${conflict.lockKey}.`, {
        details: {
          lock_key: conflict.lockKey,
          job_id: conflict.holder.jobId,
          running: conflict.holder.attemptId !== undefined,
        },
      })
    case 'duplicate':
      return new ApiError('duplicate', `Job ${conflict.holder.jobId} has the dedup key ${conflict.dedupKey}.`, {
        details: { dedup_key: conflict.dedupKey, job_id: conflict.holder.jobId },
      })
    case 'drained':
      return new ApiError('drained', 'New work is refused at the moment: drain is on.', {
        headers: { 'retry-after': '30' },
      })
  }
}
