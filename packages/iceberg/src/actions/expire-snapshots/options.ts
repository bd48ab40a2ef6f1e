import type { LoadedTable } from '../../catalogs/catalog.ts'
import { propertyOf, tableProperties } from '../../properties.ts'
import { refused } from '../refuse.ts'
import type { RetentionSettings } from './retention.ts'

export interface ExpireSnapshotsOptions {
  /** Snapshots before this time may go. Default: `history.expire.max-snapshot-age-ms` ago, 5 days. */
  readonly olderThan?: Date
  /** How many of each branch are kept whatever their age. Default: `history.expire.min-snapshots-to-keep`, 1. */
  readonly retainLast?: number
  /** Snapshots that go too, whatever their age. One that a ref or a writer needs is refused. */
  readonly snapshotIds?: readonly bigint[]
  /** Also removes schemas and partition specs that nothing uses any more. Default false. */
  readonly cleanExpiredMetadata?: boolean
  /** How old a ref without a setting of its own may become. Default: `history.expire.max-ref-age-ms`, for ever. */
  readonly maxRefAgeMs?: number
  /** How long the snapshots stay by which a streaming writer finds its progress. Default 7 days; 0: they do not. */
  readonly writerProgressMs?: number
  /** Also deletes files outside the table's own folders, as Spark does. Default false: they are counted and left. */
  readonly deleteOutsideLocation?: boolean
  /** Whether the plan counts the files that would go, for which it reads manifests. Default true. */
  readonly countFiles?: boolean
  /** Bytes of paths that are held in memory before they go to disk. Default 64 MiB. */
  readonly memoryBytes?: number
  /** Default: the present time. */
  readonly now?: Date
  readonly signal?: AbortSignal
}

/** The settings of a plan, as they print in JSON. */
export interface ExpireSettings {
  readonly nowMs: number
  readonly olderThanMs: number
  readonly retainLast: number
  /** Absent: for ever. */
  readonly maxRefAgeMs?: number
  readonly snapshotIds: readonly string[]
  readonly writerProgressMs: number
  readonly cleanExpiredMetadata: boolean
  readonly deleteOutsideLocation: boolean
}

const dayMs = 24 * 60 * 60 * 1000

/** What the caller said, else what the table says, else the format's defaults. */
export function settingsOf(table: LoadedTable, options: ExpireSnapshotsOptions): ExpireSettings {
  const { metadata } = table
  const nowMs = (options.now ?? new Date()).getTime()
  const olderThanMs = options.olderThan?.getTime() ?? nowMs - propertyOf(metadata, tableProperties.maxSnapshotAgeMs)
  const retainLast = options.retainLast ?? propertyOf(metadata, tableProperties.minSnapshotsToKeep)
  const maxRefAgeMs = options.maxRefAgeMs ?? propertyOf(metadata, tableProperties.maxRefAgeMs)
  const writerProgressMs = options.writerProgressMs ?? 7 * dayMs
  if (!Number.isInteger(retainLast) || retainLast < 1) {
    throw invalid(table, `retainLast is ${retainLast}. Keep at least 1 snapshot.`)
  }
  // What is not a number would not outlive being printed as JSON, and a plan without it would keep less.
  if (Number.isNaN(olderThanMs)) throw invalid(table, 'olderThan or now is not a time.')
  if (!(maxRefAgeMs >= 0)) throw invalid(table, `maxRefAgeMs is ${maxRefAgeMs}. Give milliseconds.`)
  if (!(writerProgressMs >= 0 && writerProgressMs <= Number.MAX_SAFE_INTEGER)) {
    throw invalid(table, `writerProgressMs is ${writerProgressMs}. Give milliseconds.`)
  }
  return {
    nowMs,
    olderThanMs,
    retainLast,
    ...(maxRefAgeMs < Number.MAX_SAFE_INTEGER && { maxRefAgeMs }),
    snapshotIds: (options.snapshotIds ?? []).map(String),
    writerProgressMs,
    cleanExpiredMetadata: options.cleanExpiredMetadata ?? false,
    deleteOutsideLocation: options.deleteOutsideLocation ?? false,
  }
}

export function retentionSettings(settings: ExpireSettings): RetentionSettings {
  return {
    ...settings,
    maxRefAgeMs: settings.maxRefAgeMs ?? Number.POSITIVE_INFINITY,
    snapshotIds: new Set(settings.snapshotIds.map(BigInt)),
  }
}

function invalid(table: LoadedTable, message: string): Error {
  return refused('Expiring snapshots', table, 'options_invalid', message)
}
