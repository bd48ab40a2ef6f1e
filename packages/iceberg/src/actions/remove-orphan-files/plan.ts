import type { Catalog, LoadedTable } from '../../catalogs/catalog.ts'
import { parseTableMetadata } from '../../metadata/metadata-file.ts'
import { marks } from '../../snapshot/candidate-files.ts'
import { below, withoutSlashAtEnd } from '../../storage/location.ts'
import { plannedTable, type ActionProgress, type PlannedTable } from '../action.ts'
import { metadataFolderOf } from '../own-locations.ts'
import { assertGarbageCollected, refused } from '../refuse.ts'
import { assertSameTable } from '../verified-deletes.ts'
import { action, assertUnshared, type TablesChecked } from './locations.ts'
import { settingsOf, type OrphanSettings, type RemoveOrphanFilesOptions } from './options.ts'
import { OrphanSearch, type Listed } from './search.ts'

export interface OrphanFile {
  readonly path: string
  readonly bytes: number
  readonly modifiedAtMs: number
}

/** What would be removed. Prints as JSON. */
export interface RemoveOrphanFilesPlan {
  readonly action: 'remove_orphan_files'
  readonly table: PlannedTable
  readonly settings: OrphanSettings
  readonly listed: Listed
  readonly orphans: readonly OrphanFile[]
  readonly orphanBytes: number
  /** Whether there are more orphans than the plan holds. */
  readonly isTruncated: boolean
  /** Orphans by bytes, of everything that was listed. */
  readonly orphanShare: number
  /** Whether that is more than `maxOrphanShare`: it has to be confirmed. */
  readonly isSuspicious: boolean
  /** Files left alone because the table refers to their path under another scheme or authority. */
  readonly mismatched: number
  readonly tablesChecked: TablesChecked
}

/** A plan with the search that made it, to be carried out without a second walk. */
export interface FoundOrphans {
  readonly plan: RemoveOrphanFilesPlan
  readonly search: OrphanSearch
  /** As it was loaded after the listing. */
  readonly table: LoadedTable
}

/** Lists a table's folder, then loads the table, and tells which of the files nothing refers to. Changes nothing. */
export async function planRemoveOrphanFiles(
  catalog: Catalog,
  table: LoadedTable,
  options: RemoveOrphanFilesOptions & { readonly onProgress?: (progress: ActionProgress) => void } = {},
): Promise<RemoveOrphanFilesPlan> {
  const { plan, search } = await findOrphans(catalog, table, options)
  await search.close()
  return plan
}

export async function findOrphans(
  catalog: Catalog,
  known: LoadedTable,
  options: RemoveOrphanFilesOptions & { readonly onProgress?: ((progress: ActionProgress) => void) | undefined },
): Promise<FoundOrphans> {
  const { signal, onProgress } = options
  assertGarbageCollected(action, known)
  const settings = await settingsOf(known, options)
  const tablesChecked = await assertUnshared(catalog, known, settings.location, options)
  const search = await OrphanSearch.open(known, settings, options)
  try {
    const listed = await search.list(known, (files) => {
      onProgress?.({ phase: 'list', files: { done: files, total: files } })
    })
    // After the listing: what is committed before this is known, and what is written after it was not listed.
    const table = await catalog.loadTable(known.identifier, { known, ...(signal !== undefined && { signal }) })
    assertSameTable(action, table, known.metadata.tableUuid)
    assertGarbageCollected(action, table)
    await search.markReachable(table)
    const mismatched = await assertPrefixes(table, settings, search)
    if (options.allowOtherTables !== true) await assertOwnMetadata(table, settings, search)
    const found = await orphansOf(search, options.maxFiles ?? 1_000_000)
    const orphanShare = found.orphanBytes / Math.max(1, listed.bytes)
    const isSuspicious = orphanShare > settings.maxOrphanShare
    const plan: RemoveOrphanFilesPlan = {
      action: 'remove_orphan_files',
      table: plannedTable(table, table.metadata.currentSnapshotId),
      settings,
      listed,
      ...found,
      orphanShare,
      isSuspicious,
      mismatched,
      tablesChecked,
    }
    return { plan, search, table }
  } catch (error) {
    await search.close()
    throw error
  }
}

async function orphansOf(search: OrphanSearch, maxFiles: number) {
  const orphans: OrphanFile[] = []
  let orphanBytes = 0
  let isTruncated = false
  for await (const batch of search.candidates.marked(marks.none, 10_000)) {
    for (const { path, bytes, modifiedAtMs } of batch) {
      if (!search.mayGo(path)) continue
      orphanBytes += bytes
      if (orphans.length < maxFiles) orphans.push({ path, bytes, modifiedAtMs })
      else isTruncated = true
    }
  }
  return { orphans, orphanBytes, isTruncated }
}

/** Returns how many files are left alone because of their prefix. */
async function assertPrefixes(table: LoadedTable, settings: OrphanSettings, search: OrphanSearch): Promise<number> {
  const { location, prefixMismatchMode } = settings
  if (location === withoutSlashAtEnd(table.metadata.location) && search.missesAll) {
    const message =
      `none of the files that the table refers to is below ${location}. They are spelled in another way. ` +
      'Register the table with the location that its files have.'
    throw refused(action, table, 'prefix_mismatch', message, { location })
  }
  let count = 0
  const examples: string[] = []
  for await (const batch of search.candidates.marked(marks.suspect)) {
    count += batch.length
    examples.push(...batch.slice(0, 10 - examples.length).map(({ path }) => path))
  }
  if (count === 0 || prefixMismatchMode !== 'error') return count
  const message =
    `the table refers to the paths of ${count} files under another scheme or authority, for instance of ${examples[0]}. ` +
    'Say which are equal (equalSchemes, equalAuthorities), or that such files are to be ignored (prefixMismatchMode).'
  throw refused(action, table, 'prefix_mismatch', message, { count, examples })
}

const maxSamples = 10

/** Refuses a folder with metadata of another table: in it or below it. */
async function assertOwnMetadata(table: LoadedTable, settings: OrphanSettings, search: OrphanSearch): Promise<void> {
  const { metadata, metadataLocation } = table
  const strangers = search.metadataFiles.filter(({ path }) => !search.isKnownMetadata(path))
  const folders = new Set(
    [
      below(metadata.location, 'metadata'),
      metadataFolderOf(metadata),
      ...[metadataLocation, ...metadata.metadataLog.map(({ metadataFile }) => metadataFile)].map(
        (file) => file && folderOf(file),
      ),
    ].flatMap((folder) => (folder === undefined ? [] : [search.keyOf(folder)])),
  )
  const elsewhere = strangers.find(({ path }) => !folders.has(search.keyOf(folderOf(path))))
  if (elsewhere !== undefined) throw shared(table, settings, elsewhere.path)
  for (const { path } of sampled(strangers.toSorted((a, b) => b.modifiedAtMs - a.modifiedAtMs))) {
    const uuid = await uuidAt(table, path)
    if (uuid !== undefined && uuid !== metadata.tableUuid) throw shared(table, settings, path)
  }
}

/** The newest, the oldest, and some in between. */
function sampled<T>(items: readonly T[]): T[] {
  if (items.length <= 3 * maxSamples) return [...items]
  const between = Array.from({ length: maxSamples }, (_, n) => items[Math.floor((items.length * n) / maxSamples)] as T)
  return [...new Set([...items.slice(0, maxSamples), ...between, ...items.slice(-maxSamples)])]
}

/** The table a metadata file is of; undefined when it cannot be read, or does not say. */
async function uuidAt({ storage }: LoadedTable, path: string): Promise<string | undefined> {
  try {
    return parseTableMetadata(await storage.read(path), path).tableUuid
  } catch {
    return undefined
  }
}

function folderOf(path: string): string {
  return path.slice(0, path.lastIndexOf('/'))
}

function shared(table: LoadedTable, { location }: OrphanSettings, path: string): Error {
  const message =
    `${path} is metadata of another table, so others have files in ${location} too. Give each table a folder of its ` +
    'own, or say that the other is gone (allowOtherTables).'
  return refused(action, table, 'location_shared', message, { location, path })
}
