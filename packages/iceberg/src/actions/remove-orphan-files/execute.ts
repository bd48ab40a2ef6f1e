import type { Catalog, LoadedTable } from '../../catalogs/catalog.ts'
import type { CandidateFile } from '../../snapshot/candidate-files.ts'
import type { Deleted } from '../../storage/storage.ts'
import { PhaseTimer, type ActionCosts, type ActionRun } from '../action.ts'
import { assertGarbageCollected, refused } from '../refuse.ts'
import { assertSameTable, deleteVerified, type DeletedFiles, type FailedFile } from '../verified-deletes.ts'
import { action } from './locations.ts'
import { assertRecent, type RemoveOrphanFilesOptions } from './options.ts'
import { findOrphans, type FoundOrphans, type RemoveOrphanFilesPlan } from './plan.ts'
import { Quarantine } from './quarantine.ts'
import { OrphanSearch } from './search.ts'

// A plan was made by listing first and loading the table afterwards. Carrying it out loads the table again, walks over
// what has come to it since, and does so once more before each batch. So a file that a writer commits at any time before
// its batch stays, however old it is.
// Limit: a commit that comes while its batch is being deleted is too late. No catalog can lock files; the age of 24 hours
// and more is what protects writers that take so long.

export interface RemoveOrphanFilesRun extends ActionRun {
  /** Removes also more orphans than `maxOrphanShare` of the plan. */
  readonly confirmShare?: boolean
  /** Moves orphans to a folder beside the table's metadata instead of deleting them. Default false. */
  readonly quarantine?: boolean
  /** Files that are deleted at once, after the table was loaded again. Default 1,000. */
  readonly deleteBatchFiles?: number
  /** Batches that are deleted at the same time. Default 4. */
  readonly maxConcurrentDeletes?: number
  readonly memoryBytes?: number
}

export interface RemoveOrphanFilesResult extends ActionCosts {
  /** The files that are gone, or were found by a dry run: the column of Spark's procedure. */
  readonly orphanFileLocations: readonly string[]
  readonly removedFiles: number
  readonly removedBytes: number
  /** Of the plan, what the table has come to refer to since. */
  readonly keptFiles: number
  /** Files that somebody else had deleted by then. */
  readonly missingFiles: number
  readonly failedDeletes: readonly FailedFile[]
  /** Where they were moved to; `restoreQuarantine` and `purgeQuarantine` take it. */
  readonly quarantineId?: string
  /** The plan that was carried out. */
  readonly plan: RemoveOrphanFilesPlan
}

/** Plans and carries out. `dryRun` only plans. */
export async function removeOrphanFiles(
  table: LoadedTable,
  options: RemoveOrphanFilesOptions & { readonly dryRun?: boolean },
  run: RemoveOrphanFilesRun,
): Promise<RemoveOrphanFilesResult> {
  const timer = new PhaseTimer()
  const { onProgress, catalog } = run
  const found = await timer.time('plan', () => findOrphans(catalog, table, { ...options, onProgress }))
  try {
    if (options.dryRun === true) return dryResult(found, timer)
    return await remove(found, run, timer)
  } finally {
    await found.search.close()
  }
}

/** Carries a plan out: what the table has come to refer to since stays. */
export async function executeRemoveOrphanFiles(
  known: LoadedTable,
  plan: RemoveOrphanFilesPlan,
  run: RemoveOrphanFilesRun,
): Promise<RemoveOrphanFilesResult> {
  const timer = new PhaseTimer()
  const { catalog, signal, memoryBytes } = run
  const search = await OrphanSearch.open(known, plan.settings, { memoryBytes, signal })
  try {
    for (const file of plan.orphans) search.add({ ...file, kind: 'other' })
    const table = await loaded(catalog, known, signal)
    await timer.time('verify', () => search.markReachable(table))
    return await remove({ plan, search, table }, run, timer)
  } finally {
    await search.close()
  }
}

async function remove(
  { plan, search, table }: FoundOrphans,
  run: RemoveOrphanFilesRun,
  timer: PhaseTimer,
): Promise<RemoveOrphanFilesResult> {
  const { catalog, signal, onProgress, maxConcurrentDeletes = 4, deleteBatchFiles = 1000 } = run
  assertSameTable(action, table, plan.table.uuid === '' ? undefined : plan.table.uuid)
  assertGarbageCollected(action, table)
  await assertRecent(table, plan.settings, signal)
  assertShare(table, plan, run)
  const planned = plan.isTruncated ? new Set(plan.orphans.map(({ path }) => path)) : undefined
  const total = plan.orphans.length
  const gone: string[] = []
  let done = 0
  const quarantine = run.quarantine === true ? new Quarantine(table) : undefined
  const removeBatch = async (fresh: LoadedTable, files: readonly CandidateFile[]): Promise<Deleted> => {
    const paths = files.map(({ path }) => path)
    const deleted =
      quarantine === undefined ? await fresh.storage.delete(paths, { signal }) : await quarantine.move(files, signal)
    const stays = new Set([...deleted.missing, ...deleted.failed.map(({ location }) => location)])
    gone.push(...paths.filter((path) => !stays.has(path)))
    return deleted
  }
  const deleted = await timer.time('delete', () =>
    deleteVerified({
      action,
      catalog,
      table,
      candidates: search.candidates,
      keyOf: search.keyOf,
      mayDelete: (path) => search.mayGo(path) && (planned === undefined || planned.has(path)),
      markReachable: search.markReachable,
      remove: removeBatch,
      beforeDelete: run.beforeDelete,
      maxConcurrentDeletes,
      batchFiles: deleteBatchFiles,
      signal,
      onBatch: (attempted) => {
        done += attempted
        onProgress?.({ phase: 'delete', files: { done, total } })
      },
    }),
  )
  return { ...resultOf(plan, gone, deleted, search, timer), ...(quarantine !== undefined && quarantine.summary) }
}

function resultOf(
  plan: RemoveOrphanFilesPlan,
  gone: readonly string[],
  { bytes, files, failed, missing }: DeletedFiles,
  search: OrphanSearch,
  timer: PhaseTimer,
): RemoveOrphanFilesResult {
  return {
    orphanFileLocations: gone,
    removedFiles: files,
    removedBytes: bytes,
    keptFiles: plan.orphans.length - files - failed.length - missing,
    missingFiles: missing,
    failedDeletes: failed,
    plan,
    bytesRead: search.bytesRead,
    bytesWritten: 0,
    phaseSeconds: timer.seconds,
  }
}

function dryResult({ plan, search, table }: FoundOrphans, timer: PhaseTimer): RemoveOrphanFilesResult {
  const nothing = { counts: {}, files: 0, bytes: 0, failed: [], missing: 0, table }
  const locations = plan.orphans.map(({ path }) => path)
  return { ...resultOf(plan, locations, nothing, search, timer), keptFiles: 0 }
}

function assertShare(table: LoadedTable, plan: RemoveOrphanFilesPlan, { confirmShare }: RemoveOrphanFilesRun): void {
  if (!plan.isSuspicious || confirmShare === true) return
  const percent = (share: number): string => `${Math.round(share * 1000) / 10} %`
  const message =
    `${plan.orphans.length} files would go, ${percent(plan.orphanShare)} of all bytes and more than ` +
    `${percent(plan.settings.maxOrphanShare)}. Look at the plan, and confirm it (confirmShare) if it is right.`
  throw refused(action, table, 'too_many_orphans', message, { orphanShare: plan.orphanShare })
}

async function loaded(catalog: Catalog, known: LoadedTable, signal: AbortSignal | undefined): Promise<LoadedTable> {
  return await catalog.loadTable(known.identifier, { known, ...(signal !== undefined && { signal }) })
}
