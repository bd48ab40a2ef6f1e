import { FencepostError } from '../errors.ts'
import type { Json } from '../json.ts'
import type { Operation } from '../operation.ts'
import type { Job } from './job.ts'

/** For how long to wait for a job, and what kind of job it is. */
export interface WaitOptions<Result = Json> {
  /** Aborting it ends the wait: it rejects with the signal's reason. */
  signal?: AbortSignal
  /** How long to wait at most; for ever when left out. */
  timeoutMs?: number
  /** The operation of the job, whose result schema types what is answered. */
  operation?: Operation<unknown, Result>
}

/** What came of waiting for a job. */
export type Waited<Result = Json> =
  /** It has ended; the result is null unless it completed. */
  | { ended: true; job: Omit<Job, 'result'> & { result: Result | null } }
  /** There is no such job, or it was deleted; or it has not ended in time. */
  | { ended: false; why: 'not_found' | 'timeout' }

/** The answer. The result fitted its schema when the job completed, and is not checked again. */
export function waited<Result>(
  found: Job | 'gone' | 'timeout',
  operation: Operation<unknown, Result> | undefined,
): Waited<Result> {
  if (found === 'gone') return { ended: false, why: 'not_found' }
  if (found === 'timeout') return { ended: false, why: 'timeout' }
  if (operation !== undefined && operation.name !== found.operation) {
    throw new FencepostError(
      'options_invalid',
      `Job ${found.jobId} is of operation ${found.operation}, not ${operation.name}. Wait for it with its own operation.`,
    )
  }
  return { ended: true, job: { ...found, result: found.result as Result | null } }
}
