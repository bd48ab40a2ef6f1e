import type { LoadedTable } from '../../catalogs/catalog.ts'
import { withoutSlashAtEnd } from '../../storage/location.ts'
import { refused } from '../refuse.ts'
import { action, assertListable } from './locations.ts'

export interface RemoveOrphanFilesOptions {
  /** Files that were changed before this time may go, by the clock of the storage. Default: 3 days ago; at least 24 hours. */
  readonly olderThan?: Date
  /** The folder that is listed. Default: the table's location. It must be one of the table's own folders, or in one. */
  readonly location?: string
  /** Schemes that mean the same: `{ 's3a,s3n': 's3' }` is always there. */
  readonly equalSchemes?: Readonly<Record<string, string>>
  /** Authorities, such as buckets, that mean the same: `{ 'old,older': 'new' }`. */
  readonly equalAuthorities?: Readonly<Record<string, string>>
  /**
   * What becomes of a file whose path the table refers to under another scheme or authority: `error` refuses the
   * action, `ignore` leaves the file, `delete` deletes it. Default error.
   */
  readonly prefixMismatchMode?: 'error' | 'ignore' | 'delete'
  /** More orphans than this share of all bytes are only removed when confirmed. Default 0.3. */
  readonly maxOrphanShare?: number
  /** Locations of other tables that are known. Those of the catalog's tables are looked up besides. */
  readonly otherLocations?: readonly string[]
  /** Tables of the catalog whose locations are looked up. Default 500; 0: none. */
  readonly maxTablesChecked?: number
  /** Removes orphans although metadata of another table is in the folder, for instance of one that was dropped. */
  readonly allowOtherTables?: boolean
  /** Orphans that one plan holds; the next finds the rest. Default 1,000,000. */
  readonly maxFiles?: number
  /** Bytes of paths that are held in memory before they go to disk. Default 64 MiB. */
  readonly memoryBytes?: number
  readonly signal?: AbortSignal
}

/** The settings of a plan, as they print in JSON. */
export interface OrphanSettings {
  readonly location: string
  readonly olderThanMs: number
  /** When the listing began, by the clock of the storage. */
  readonly listedAtMs: number
  readonly equalSchemes: Readonly<Record<string, string>>
  readonly equalAuthorities: Readonly<Record<string, string>>
  readonly prefixMismatchMode: 'error' | 'ignore' | 'delete'
  readonly maxOrphanShare: number
}

const hourMs = 60 * 60 * 1000
/** Nothing younger goes, whatever the caller says: a writer may be about to commit it. */
const floorMs = 24 * hourMs
const defaultAgeMs = 72 * hourMs

/** Checked, with the defaults filled in. The age is counted by the clock that dates the files. */
export async function settingsOf(table: LoadedTable, options: RemoveOrphanFilesOptions): Promise<OrphanSettings> {
  const location = withoutSlashAtEnd(options.location ?? table.metadata.location)
  assertListable(table, location)
  const { maxOrphanShare = 0.3, prefixMismatchMode = 'error', signal } = options
  if (!(maxOrphanShare >= 0 && maxOrphanShare <= 1)) {
    throw refused(action, table, 'options_invalid', `maxOrphanShare is ${maxOrphanShare}. Give a share from 0 to 1.`)
  }
  const listedAtMs = (await table.storage.now(location, { signal })).getTime()
  const olderThanMs = options.olderThan?.getTime() ?? listedAtMs - defaultAgeMs
  if (!(olderThanMs <= listedAtMs - floorMs)) {
    const message =
      'olderThan is less than 24 hours ago by the clock of the storage. Younger files may belong to a writer that has ' +
      'not committed yet. Give an earlier time.'
    throw refused(action, table, 'older_than_too_recent', message, { olderThanMs, storageNowMs: listedAtMs })
  }
  return {
    location,
    olderThanMs,
    listedAtMs,
    equalSchemes: options.equalSchemes ?? {},
    equalAuthorities: options.equalAuthorities ?? {},
    prefixMismatchMode,
    maxOrphanShare,
  }
}

/** What was listed too long ago may have been written again under the same name since. */
export async function assertRecent(table: LoadedTable, settings: OrphanSettings, signal?: AbortSignal): Promise<void> {
  const nowMs = (await table.storage.now(settings.location, { signal })).getTime()
  if (nowMs - settings.listedAtMs <= floorMs) return
  throw refused(action, table, 'plan_too_old', 'its files were listed more than 24 hours ago. Plan again.')
}
