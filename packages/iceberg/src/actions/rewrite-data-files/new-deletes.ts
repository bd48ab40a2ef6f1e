import type { LoadedTable } from '../../catalogs/catalog.ts'
import { IcebergError } from '../../errors.ts'
import type { ContentFile } from '../../manifests/content-file.ts'
import { partitionKey } from '../../manifests/partition-key.ts'
import { partitionTypesOf } from '../../manifests/partition-type.ts'
import { isAncestor } from '../../metadata/ancestry.ts'
import type { Snapshot } from '../../metadata/snapshot.ts'
import { partitionSpecOf } from '../../metadata/table-metadata.ts'
import { explained } from '../../parquet/duckdb.ts'
import { parquetTable } from '../../parquet/parquet-table.ts'
import { TableReader, type ReaderOptions } from '../../scan/table-reader.ts'
import { isUnpartitioned } from '../../schema/partition-spec.ts'
import { deletePathId, onlyPath } from '../../snapshot/delete.ts'
import { manifestsOf } from '../../snapshot/live-files.ts'
import { readManifests } from '../../snapshot/read-manifests.ts'
import { rewriteContext, type RewrittenGroup } from './live-group.ts'

// What was deleted since a group was read, and would come back with its new files:
// - position deletes and vectors of one of its files, found by the file they name, by equal bounds of the paths, or by
//   spec and partition; the latter are read, since one file of them may name many files, or others.
// - equality deletes, when new files get the sequence number of their commit: they reach older files only. With the
//   starting number they still apply to the new files, as long as those are in the same partition. Where a group goes to
//   another spec, they would be lost, or those of the new partition would delete too much.

export interface Conflict {
  readonly group: RewrittenGroup
  readonly why: 'new-deletes' | 'history' | 'format-version' | 'not-live'
}

/** The groups that cannot be committed on top of `head`, for what was committed since they were read. */
export async function newDeleteConflicts(
  table: LoadedTable,
  head: Snapshot | undefined,
  groups: readonly RewrittenGroup[],
  settings: { readonly keepsSequenceNumber: boolean; readonly reading: ReaderOptions },
): Promise<Conflict[]> {
  const [first] = groups
  if (first === undefined) return []
  const { start, formatVersion } = first
  const { metadata } = table
  if (formatVersion !== metadata.formatVersion) return groups.map((group) => ({ group, why: 'format-version' }))
  if (head?.snapshotId === start.snapshotId) return []
  if (head === undefined || !isAncestor(metadata, head.snapshotId, start.snapshotId)) {
    return groups.map((group) => ({ group, why: 'history' }))
  }
  if (metadata.formatVersion === 1) return []
  const hit = new Set<RewrittenGroup>()
  const inputs = new Inputs(table, groups)
  for await (const file of deletesSince(table, head, start)) {
    for (const group of inputs.reachedBy(file, settings.keepsSequenceNumber)) hit.add(group)
    const suspects = inputs.suspectsOf(file).filter((group) => !hit.has(group))
    if (suspects.length === 0) continue
    const named = await pathsIn(table, head, file, settings.reading)
    for (const group of suspects) {
      if (named === 'unreadable' || group.files.some((scanned) => named.has(scanned.file.filePath))) hit.add(group)
    }
  }
  return [...hit].map((group) => ({ group, why: 'new-deletes' }))
}

/** Delete files with a sequence number after that of the start. Manifests that are older hold none. */
async function* deletesSince(table: LoadedTable, head: Snapshot, start: Snapshot): AsyncGenerator<ContentFile> {
  const since = start.sequenceNumber ?? 0n
  const manifests = (await manifestsOf(table, head)).filter(
    (manifest) => manifest.content === 'deletes' && (manifest.sequenceNumber ?? since + 1n) > since,
  )
  const partitionOf = (specId: number) => partitionTypesOf(table.metadata, specId)
  for await (const { entries } of readManifests(table.storage, manifests, { partitionOf, statistics: true })) {
    for (const { file, sequenceNumber } of entries) if (sequenceNumber > since) yield file
  }
}

/** The files of groups, and where they go, by what deletes reach them with. */
class Inputs {
  readonly #table: LoadedTable
  readonly #byPath = new Map<string, RewrittenGroup>()
  readonly #byPartition = new Map<string, Set<RewrittenGroup>>()
  /** Groups that leave their partitions, by those they leave and those they go to. */
  readonly #moved = new Map<string, Set<RewrittenGroup>>()

  constructor(table: LoadedTable, groups: readonly RewrittenGroup[]) {
    this.#table = table
    for (const group of groups) {
      const to = group.added.map(keyOf)
      const from = group.files.map(({ file }) => keyOf(file))
      for (const { file } of group.files) this.#byPath.set(file.filePath, group)
      for (const key of from) add(this.#byPartition, key, group)
      const moves = new Set([...from, ...to]).size > 1
      if (moves) for (const key of [...from, ...to]) add(this.#moved, key, group)
    }
  }

  /** The groups that a delete file certainly concerns. */
  reachedBy(file: ContentFile, keepsSequenceNumber: boolean): Iterable<RewrittenGroup> {
    if (file.content === 'position-deletes') {
      const group = this.#byPath.get(onlyPath(file) ?? '')
      return group === undefined ? [] : [group]
    }
    const isGlobal = isUnpartitioned(partitionSpecOf(this.#table.metadata, file.specId))
    if (isGlobal) return keepsSequenceNumber ? [] : this.#byPath.values()
    const reached = keepsSequenceNumber ? this.#moved : this.#byPartition
    return reached.get(keyOf(file)) ?? []
  }

  /** The groups that position deletes of a whole partition may concern. */
  suspectsOf(file: ContentFile): RewrittenGroup[] {
    if (file.content !== 'position-deletes' || onlyPath(file) !== undefined) return []
    return [...(this.#byPartition.get(keyOf(file)) ?? [])]
  }
}

function keyOf(file: ContentFile): string {
  return partitionKey(file.specId, file.partition)
}

function add(map: Map<string, Set<RewrittenGroup>>, key: string, group: RewrittenGroup): void {
  const groups = map.get(key) ?? new Set()
  map.set(key, groups.add(group))
}

/** The data files that position deletes name. */
async function pathsIn(
  table: LoadedTable,
  head: Snapshot,
  file: ContentFile,
  reading: ReaderOptions,
): Promise<ReadonlySet<string> | 'unreadable'> {
  const reader = await TableReader.open(table, rewriteContext(table, head), reading)
  try {
    const { opened, staged } = await reader.open(file)
    try {
      const at = opened.columns.findIndex(({ fieldId }) => fieldId === deletePathId)
      if (at === -1) return 'unreadable'
      const sql = `select distinct p${at} from ${parquetTable(opened.path, opened.columns.length)}`
      const rows = (await explained(reader.connection.runAndReadAll(sql))).getRows()
      return new Set(rows.map(([path]) => String(path)))
    } finally {
      await staged.release()
    }
  } catch (error) {
    if (error instanceof IcebergError && error.code === 'scan_unsupported') return 'unreadable'
    throw error
  } finally {
    await reader.close()
  }
}
