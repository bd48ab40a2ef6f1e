/** What became of a write made on behalf of an attempt. */
export type Settled =
  | { settled: true }
  /** The attempt is no longer the current one: it expired, was recovered, was cancelled, or has already ended. */
  | { settled: false; why: 'fence_lost' }

/** Names one attempt. There is no way to settle a job by its id alone. */
export interface Fence {
  jobId: string
  attemptId: string
}
