import { ApiError } from '../error.ts'

interface Bucket {
  tokens: number
  at: number
}

// More callers than this at once are not told apart: the oldest are forgotten, and start with a full bucket.
const maxBuckets = 10_000

/** A bucket for each caller that fills at a steady rate: `burst` requests at once, `perSecond` in the long run. */
export class RateLimit {
  readonly #perSecond: number
  readonly #burst: number
  readonly #buckets = new Map<string, Bucket>()

  constructor(options: { perSecond: number; burst: number }) {
    this.#perSecond = options.perSecond
    this.#burst = options.burst
  }

  /** Takes one request of a caller, or refuses it. */
  take(caller: string, nowMs = performance.now()): void {
    const bucket = this.#buckets.get(caller) ?? { tokens: this.#burst, at: nowMs }
    bucket.tokens = Math.min(this.#burst, bucket.tokens + ((nowMs - bucket.at) / 1000) * this.#perSecond)
    bucket.at = nowMs
    this.#buckets.delete(caller) // so that the oldest come first
    this.#buckets.set(caller, bucket)
    if (this.#buckets.size > maxBuckets) this.#buckets.delete(this.#buckets.keys().next().value ?? '')
    if (bucket.tokens >= 1) {
      bucket.tokens -= 1
      return
    }
    const seconds = Math.max(1, Math.ceil((1 - bucket.tokens) / this.#perSecond))
    throw new ApiError('rate_limited', `Too many requests: come back in ${seconds} s.`, {
      headers: { 'retry-after': String(seconds) },
      details: { retry_after_seconds: seconds },
    })
  }
}
