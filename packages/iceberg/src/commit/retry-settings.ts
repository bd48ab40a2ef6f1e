import type { TableMetadata } from '../metadata/table-metadata.ts'

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

const retryDefaults: Backoff = { retries: 4, minWaitMs: 100, maxWaitMs: 60_000, totalMs: 1_800_000 }
const statusCheckDefaults: Backoff = { retries: 3, minWaitMs: 1000, maxWaitMs: 60_000, totalMs: 1_800_000 }

export function retrySettingsOf(metadata: Pick<TableMetadata, 'properties'>): RetrySettings {
  return {
    ...backoffOf(metadata, 'commit.retry', retryDefaults),
    statusCheck: backoffOf(metadata, 'commit.status-check', statusCheckDefaults),
  }
}

function backoffOf({ properties }: Pick<TableMetadata, 'properties'>, prefix: string, defaults: Backoff): Backoff {
  const number = (key: string, otherwise: number): number => {
    const value = Number(properties[`${prefix}.${key}`] ?? otherwise)
    return Number.isFinite(value) && value >= 0 ? value : otherwise
  }
  return {
    retries: number('num-retries', defaults.retries),
    minWaitMs: number('min-wait-ms', defaults.minWaitMs),
    maxWaitMs: number('max-wait-ms', defaults.maxWaitMs),
    totalMs: number('total-timeout-ms', defaults.totalMs),
  }
}

export const defaultRetrySettings: RetrySettings = { ...retryDefaults, statusCheck: statusCheckDefaults }

/**
 * The pause after a failed try, 1 being the first: doubled each time, up to the longest. Between half of it and all of
 * it, by chance, for those who met once would meet again.
 */
export function pauseMs(settings: Backoff, failed: number, random: () => number = Math.random): number {
  const longest = Math.min(settings.maxWaitMs, settings.minWaitMs * 2 ** (failed - 1))
  return Math.round(longest / 2 + (longest / 2) * random())
}
