import { anySignal } from './any-signal.ts'

/** Why a request was given up. */
export class AnswerTimeoutError extends Error {
  constructor(timeoutMs: number) {
    super(`no answer within ${timeoutMs} ms`)
    this.name = 'AnswerTimeoutError'
  }
}

/** A signal that fires with the caller's, or with an AnswerTimeoutError once the time is over; until it is cleared. */
export function deadline(
  timeoutMs: number,
  signal: AbortSignal | undefined,
): { signal: AbortSignal; clear: () => void } {
  const late = new AbortController()
  const timer = setTimeout(() => late.abort(new AnswerTimeoutError(timeoutMs)), timeoutMs)
  return { signal: anySignal([signal, late.signal]) ?? late.signal, clear: () => clearTimeout(timer) }
}
