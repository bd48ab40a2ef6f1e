import { propertyOf, tableProperties, type HasProperties } from '../properties.ts'

/** How often something is tried again, and how long it waits in between. */
export interface Backoff {
  /** Tries after the first. */
  readonly retries: number
  readonly minWaitMs: number
  readonly maxWaitMs: number
  /** From the first try; no try begins after it. */
  readonly totalMs: number
}

/** How often and how patiently a commit is tried, as the table says (`commit.retry.…`). */
export interface RetrySettings extends Backoff {
  /** How a commit of unknown outcome is looked for (`commit.status-check.…`). */
  readonly statusCheck: Backoff
}

export function retrySettingsOf(metadata: HasProperties): RetrySettings {
  return {
    retries: propertyOf(metadata, tableProperties.commitRetries),
    minWaitMs: propertyOf(metadata, tableProperties.commitMinWaitMs),
    maxWaitMs: propertyOf(metadata, tableProperties.commitMaxWaitMs),
    totalMs: propertyOf(metadata, tableProperties.commitTotalMs),
    statusCheck: {
      retries: propertyOf(metadata, tableProperties.statusCheckRetries),
      minWaitMs: propertyOf(metadata, tableProperties.statusCheckMinWaitMs),
      maxWaitMs: propertyOf(metadata, tableProperties.statusCheckMaxWaitMs),
      totalMs: propertyOf(metadata, tableProperties.statusCheckTotalMs),
    },
  }
}

export const defaultRetrySettings = retrySettingsOf({ properties: {} })

/**
 * The pause after a failed try, 1 being the first: doubled each time, up to the longest. Between half of it and all of
 * it, by chance, for those who met once would meet again.
 */
export function pauseMs(settings: Backoff, failed: number, random: () => number = Math.random): number {
  const longest = Math.min(settings.maxWaitMs, settings.minWaitMs * 2 ** (failed - 1))
  return Math.round(longest / 2 + (longest / 2) * random())
}
