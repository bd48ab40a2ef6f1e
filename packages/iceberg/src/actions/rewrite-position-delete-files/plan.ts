import type { LoadedTable } from '../../catalogs/catalog.ts'
import { partitionKey } from '../../manifests/partition-key.ts'
import { partitionPath } from '../../manifests/partition-path.ts'
import { partitionTypesOf } from '../../manifests/partition-type.ts'
import { currentSnapshot, mainBranch, partitionSpecOf } from '../../metadata/table-metadata.ts'
import { assertWritable } from '../../metadata/validate.ts'
import type { Filter } from '../../scan/filter.ts'
import { planContext } from '../../scan/plan.ts'
import { partitionMayMatch } from '../../scan/prune.ts'
import { plannedTable, type PlannedTable } from '../action.ts'
import { deleteEntries, isVector, type DeleteEntry } from './delete-entries.ts'
import { settingsOf, type RewritePositionDeletesOptions, type RewritePositionDeletesSettings } from './options.ts'

export interface RewritePositionDeletesRequest {
  readonly options?: RewritePositionDeletesOptions
  /** Deletes of partitions that may have such rows are rewritten. */
  readonly where?: Filter
  readonly signal?: AbortSignal
}

/** Why a group is rewritten. */
export type DeleteGroupReason = 'rewrite-all' | 'enough-files' | 'enough-bytes' | 'too-many-bytes'
/** Why deletes are left as they are. */
export type DeletesLeftOut = 'vector' | 'filtered' | 'well-as-it-is' | 'group-too-small' | 'no-gain'

export interface PlannedDeletes {
  readonly path: string
  readonly bytes: number
  readonly rows: number
}

/** Delete files of one partition that are rewritten together. */
export interface DeleteGroup {
  readonly number: number
  /** As folders, `day=2026-01-02`. */
  readonly partition: string
  readonly why: DeleteGroupReason
  readonly files: readonly PlannedDeletes[]
  readonly bytes: number
  /** In v3 it follows from the rows how many vectors there will be. */
  readonly expectedFiles?: number
}

/** What a rewrite of position deletes will do. Plain data, which prints as JSON. */
export interface RewritePositionDeletesPlan {
  readonly action: 'rewrite_position_delete_files'
  readonly table: PlannedTable
  readonly settings: RewritePositionDeletesSettings
  readonly groups: readonly DeleteGroup[]
  readonly leftOut: readonly { readonly why: DeletesLeftOut; readonly files: number; readonly bytes: number }[]
}

/**
 * Finds position delete files of main that are worth rewriting, by the rules of Spark's procedure, and groups them by
 * partition. In v3 every file that is no vector is one too many, and a partition is never divided, since a data file
 * gets one vector. Reads manifests only.
 */
export async function planRewritePositionDeletes(
  table: LoadedTable,
  { options = {}, where, signal }: RewritePositionDeletesRequest = {},
): Promise<RewritePositionDeletesPlan> {
  const { metadata } = table
  assertWritable(metadata)
  const settings = settingsOf(metadata, options)
  const head = currentSnapshot(metadata, mainBranch)
  const left = new LeftOut()
  const context = planContext(metadata, where === undefined ? {} : { filter: where })
  const partitions = new Map<string, DeleteEntry[]>()
  for (const entry of await deleteEntries(table, head, signal)) {
    const { file } = entry
    const matches = context.filter === undefined || partitionMayMatch(context.filter, file, context.specOf(file.specId))
    if (isVector(entry)) left.add('vector', [entry])
    else if (!matches) left.add('filtered', [entry])
    else {
      const key = partitionKey(file.specId, file.partition)
      const list = partitions.get(key) ?? []
      list.push(entry)
      partitions.set(key, list)
    }
  }
  const groups: Omit<DeleteGroup, 'number'>[] = []
  const isV3 = metadata.formatVersion >= 3
  for (const entries of partitions.values()) {
    const candidates = isV3 ? entries : candidatesOf(entries, settings, left)
    for (const files of isV3 ? [candidates] : packed(candidates, settings)) {
      const why = reasonOf(files, settings)
      if (why === undefined) left.add('group-too-small', files)
      else if (!isV3 && !gains(files, settings)) left.add('no-gain', files)
      else groups.push(groupOf(table, files, why, settings))
    }
  }
  return {
    action: 'rewrite_position_delete_files',
    table: plannedTable(table, head?.snapshotId),
    settings,
    groups: ordered(groups, settings).map((group, number) => ({ number, ...group })),
    leftOut: left.all,
  }
}

class LeftOut {
  readonly #counts = new Map<DeletesLeftOut, { files: number; bytes: number }>()

  add(why: DeletesLeftOut, entries: readonly DeleteEntry[]): void {
    if (entries.length === 0) return
    const count = this.#counts.get(why) ?? { files: 0, bytes: 0 }
    count.files += entries.length
    count.bytes += bytesOf(entries)
    this.#counts.set(why, count)
  }

  get all(): RewritePositionDeletesPlan['leftOut'] {
    return [...this.#counts].map(([why, count]) => ({ why, ...count }))
  }
}

function candidatesOf(
  entries: readonly DeleteEntry[],
  settings: RewritePositionDeletesSettings,
  left: LeftOut,
): DeleteEntry[] {
  const ofPath = new Map<string, number>()
  for (const { only } of entries) if (only !== undefined) ofPath.set(only, (ofPath.get(only) ?? 0) + 1)
  return entries.filter((entry) => {
    const bytes = entry.file.fileSizeInBytes
    const isTooLarge = bytes > settings.maxBytes
    // Where every data file is to have its own, one that is alone is as it should be.
    const isAlone = settings.granularity === 'file' && entry.only !== undefined && ofPath.get(entry.only) === 1
    if (settings.rewriteAll || isTooLarge || (bytes < settings.minBytes && !isAlone)) return true
    left.add('well-as-it-is', [entry])
    return false
  })
}

/** Packs files in their order: a group is closed by the first file that does not fit into it. */
function packed(
  entries: readonly DeleteEntry[],
  { maxGroupBytes, maxGroupFiles }: RewritePositionDeletesSettings,
): DeleteEntry[][] {
  const groups: DeleteEntry[][] = []
  let bytes = 0
  for (const entry of entries) {
    const group = groups.at(-1)
    const size = entry.file.fileSizeInBytes
    if (group !== undefined && bytes + size <= maxGroupBytes && group.length < maxGroupFiles) group.push(entry)
    else {
      groups.push([entry])
      bytes = 0
    }
    bytes += size
  }
  return groups
}

function reasonOf(
  files: readonly DeleteEntry[],
  settings: RewritePositionDeletesSettings,
): DeleteGroupReason | undefined {
  if (files.length === 0) return undefined
  if (settings.rewriteAll) return 'rewrite-all'
  const bytes = bytesOf(files)
  if (files.length > 1 && files.length >= settings.minInputFiles) return 'enough-files'
  if (files.length > 1 && bytes > settings.targetBytes) return 'enough-bytes'
  return bytes > settings.maxBytes ? 'too-many-bytes' : undefined
}

/** Whether there will be fewer files, or none that is too large. Else a rewrite would make the same again. */
function gains(files: readonly DeleteEntry[], settings: RewritePositionDeletesSettings): boolean {
  const { rewriteAll, granularity, targetBytes, maxBytes } = settings
  if (rewriteAll || granularity === 'file') return true
  return (
    Math.ceil(bytesOf(files) / targetBytes) < files.length || files.some(({ file }) => file.fileSizeInBytes > maxBytes)
  )
}

function groupOf(
  { metadata }: LoadedTable,
  entries: readonly DeleteEntry[],
  why: DeleteGroupReason,
  { granularity, targetBytes }: RewritePositionDeletesSettings,
): Omit<DeleteGroup, 'number'> {
  const { specId = 0, partition = [] } = entries[0]?.file ?? {}
  const bytes = bytesOf(entries)
  const isCountable = metadata.formatVersion < 3 && granularity === 'partition'
  return {
    partition: partitionPath(partitionSpecOf(metadata, specId), partitionTypesOf(metadata, specId), partition),
    why,
    files: entries.map(({ file }) => ({ path: file.filePath, bytes: file.fileSizeInBytes, rows: file.recordCount })),
    bytes,
    ...(isCountable && { expectedFiles: Math.ceil(bytes / targetBytes) }),
  }
}

function ordered<G extends Pick<DeleteGroup, 'files' | 'bytes'>>(
  groups: readonly G[],
  { jobOrder }: RewritePositionDeletesSettings,
): readonly G[] {
  if (jobOrder === 'none') return groups
  const size = (group: G): number => (jobOrder.startsWith('bytes') ? group.bytes : group.files.length)
  const sign = jobOrder.endsWith('asc') ? 1 : -1
  return groups.toSorted((a, b) => sign * (size(a) - size(b)))
}

function bytesOf(entries: readonly DeleteEntry[]): number {
  return entries.reduce((sum, { file }) => sum + file.fileSizeInBytes, 0)
}
