import { anySignal } from './any-signal.ts'

/** Why a request was given up. */
export class AnswerTimeoutError extends Error {
  constructor(timeoutMs: number) {
    super(`no answer within ${timeoutMs} ms`)
    this.name = 'AnswerTimeoutError'
  }
}

export interface Deadline {
  signal: AbortSignal
  /** The answer has begun in time: from now on only the caller's signal counts. */
  clear: () => void
  /** All is done. Nothing of it stays with the caller's signal. */
  end: () => void
}

/** A signal that fires with the caller's, or with an AnswerTimeoutError once the time is over; until it is cleared. */
export function deadline(timeoutMs: number, signal: AbortSignal | undefined): Deadline {
  const late = new AbortController()
  const timer = setTimeout(() => late.abort(new AnswerTimeoutError(timeoutMs)), timeoutMs)
  const clear = () => clearTimeout(timer)
  return {
    signal: anySignal([signal, late.signal]) ?? late.signal,
    clear,
    end: () => {
      clear()
      late.abort()
    },
  }
}
