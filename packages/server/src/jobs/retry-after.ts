import type { Job } from '@fencepost/engine'

/** How long callers are asked to wait before they look again at a job that has not ended. */
const lookAgainSeconds = 30

/** The header that asks to look again later, while there is something to wait for. */
export function retryAfter({ status }: Pick<Job, 'status'>): Record<string, string> {
  return status === 'pending' || status === 'running' ? { 'retry-after': String(lookAgainSeconds) } : {}
}
