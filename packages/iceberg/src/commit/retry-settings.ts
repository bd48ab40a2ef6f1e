import type { TableMetadata } from '../metadata/table-metadata.ts'

/** How often and how patiently a commit is tried, as the table says (`commit.retry.…`). */
export interface RetrySettings {
  /** Tries after the first. */
  readonly retries: number
  readonly minWaitMs: number
  readonly maxWaitMs: number
  /** From the first try; no try begins after it. */
  readonly totalMs: number
}

const defaults: RetrySettings = { retries: 4, minWaitMs: 100, maxWaitMs: 60_000, totalMs: 1_800_000 }

export function retrySettingsOf({ properties }: Pick<TableMetadata, 'properties'>): RetrySettings {
  const number = (key: string, otherwise: number): number => {
    const value = Number(properties[key] ?? otherwise)
    return Number.isFinite(value) && value >= 0 ? value : otherwise
  }
  return {
    retries: number('commit.retry.num-retries', defaults.retries),
    minWaitMs: number('commit.retry.min-wait-ms', defaults.minWaitMs),
    maxWaitMs: number('commit.retry.max-wait-ms', defaults.maxWaitMs),
    totalMs: number('commit.retry.total-timeout-ms', defaults.totalMs),
  }
}

export const defaultRetrySettings = defaults

/**
 * The pause after a failed try, 1 being the first: doubled each time, up to the longest. Between half of it and all of
 * it, by chance, for those who met once would meet again.
 */
export function pauseMs(settings: RetrySettings, failed: number, random: () => number = Math.random): number {
  const longest = Math.min(settings.maxWaitMs, settings.minWaitMs * 2 ** (failed - 1))
  return Math.round(longest / 2 + (longest / 2) * random())
}
