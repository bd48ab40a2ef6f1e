import type { LoadedTable } from '../../catalogs/catalog.ts'
import { commitTable } from '../../commit/index.ts'
import { fileKey, type ContentFile, type ManifestEntry } from '../../manifests/content-file.ts'
import { partitionKey } from '../../manifests/partition-key.ts'
import { partitionTypesOf } from '../../manifests/partition-type.ts'
import type { Snapshot } from '../../metadata/snapshot.ts'
import { currentSnapshot, partitionSpecOf } from '../../metadata/table-metadata.ts'
import { isUnpartitioned } from '../../schema/partition-spec.ts'
import { manifestsOf } from '../../snapshot/live-files.ts'
import { onlyPath } from '../../snapshot/delete.ts'
import { readManifests } from '../../snapshot/read-manifests.ts'
import { pathAlone } from '../../storage/location.ts'
import { buildSnapshot } from '../../write/build-snapshot.ts'
import { commitOptionsOf, type ActionRun } from '../action.ts'

// Deletes that can match nothing any more, as Spark's remove-dangling-deletes finds them: position deletes that are older
// than every data file of their partition, equality deletes that are not newer than one, deletes of a partition without
// data files, and vectors of files that are not live. So are position deletes whose one data file, by name or by equal
// bounds of their paths, is not live or is newer. Unlike there, equality deletes of an unpartitioned spec are kept
// while any data file is older, for they reach all partitions.

/** Removes dangling deletes from a branch, in a commit of its own; undefined when there are none. */
export async function removeDanglingDeletes(
  table: LoadedTable,
  branch: string,
  run: ActionRun,
): Promise<Snapshot | undefined> {
  const outcome = await commitTable(
    run.catalog,
    table.identifier,
    async (fresh, attempt) => {
      const head = currentSnapshot(fresh.metadata, branch)
      const removed = head === undefined ? [] : await danglingDeletes(fresh, head, run.signal)
      if (removed.length === 0) return undefined
      const { summary, signal } = run
      const change = { added: [], removed, operation: 'replace' as const, ...(summary !== undefined && { summary }) }
      return await buildSnapshot(fresh, branch, change, attempt, { signal })
    },
    commitOptionsOf(run, table.metadata.tableUuid),
  )
  if (outcome.outcome === 'unknown') throw outcome.error
  if (outcome.outcome === 'applied') {
    return outcome.built.updates.find((update) => update.action === 'add-snapshot')?.snapshot
  }
  if (outcome.error !== undefined) throw outcome.error
  return undefined
}

/** What is kept of a delete file: its statistics would hold on to the manifest. */
interface KnownDelete {
  readonly file: Pick<ContentFile, 'content' | 'filePath' | 'contentOffset' | 'specId' | 'partition'>
  readonly sequenceNumber: bigint
  /** The one data file it is for, as `pathAlone` names it. */
  readonly only: string | undefined
}

function known({ file, sequenceNumber }: ManifestEntry): KnownDelete {
  const { content, filePath, contentOffset, specId, partition } = file
  const path = content === 'position-deletes' ? onlyPath(file) : undefined
  return {
    file: { content, filePath, contentOffset, specId, partition },
    sequenceNumber,
    only: path === undefined ? undefined : pathAlone(path),
  }
}

async function danglingDeletes(table: LoadedTable, head: Snapshot, signal?: AbortSignal): Promise<KnownDelete[]> {
  const deletes = new Map<string, KnownDelete>()
  for await (const entry of entriesOf(table, head, 'deletes', signal)) deletes.set(fileKey(entry.file), known(entry))
  if (deletes.size === 0) return []
  const data = new LiveData(table, [...deletes.values()])
  for await (const entry of entriesOf(table, head, 'data', signal)) data.note(entry)
  return [...deletes.values()].filter((each) => data.isDangling(each))
}

async function* entriesOf(
  table: LoadedTable,
  head: Snapshot,
  content: 'data' | 'deletes',
  signal: AbortSignal | undefined,
): AsyncGenerator<ManifestEntry> {
  const manifests = (await manifestsOf(table, head)).filter((manifest) => manifest.content === content)
  const partitionOf = (specId: number) => partitionTypesOf(table.metadata, specId)
  const options = { partitionOf, statistics: content === 'deletes', signal }
  for await (const { entries } of readManifests(table.storage, manifests, options)) yield* entries
}

class LiveData {
  readonly #table: LoadedTable
  /** The lowest sequence number in each partition that has deletes. */
  readonly #least = new Map<string, bigint | undefined>()
  /**
   * The sequence number of each data file that is the only one of some deletes; undefined while it was not found. Files are
   * known without scheme and authority: engines that match those otherwise would lose the deletes.
   */
  readonly #referenced = new Map<string, bigint | undefined>()
  #leastOfAll: bigint | undefined

  constructor(table: LoadedTable, deletes: readonly KnownDelete[]) {
    this.#table = table
    for (const { file, only } of deletes) {
      if (only === undefined) this.#least.set(partitionKey(file.specId, file.partition), undefined)
      else this.#referenced.set(only, undefined)
    }
  }

  note({ file, sequenceNumber }: ManifestEntry): void {
    const key = partitionKey(file.specId, file.partition)
    const least = this.#least.get(key)
    if (this.#least.has(key) && (least === undefined || sequenceNumber < least)) this.#least.set(key, sequenceNumber)
    if (this.#leastOfAll === undefined || sequenceNumber < this.#leastOfAll) this.#leastOfAll = sequenceNumber
    if (this.#referenced.size === 0) return
    const path = pathAlone(file.filePath)
    if (!this.#referenced.has(path)) return
    const earlier = this.#referenced.get(path)
    if (earlier === undefined || sequenceNumber < earlier) this.#referenced.set(path, sequenceNumber)
  }

  isDangling({ file, sequenceNumber, only }: KnownDelete): boolean {
    if (only !== undefined) {
      const ofFile = this.#referenced.get(only)
      return ofFile === undefined || sequenceNumber < ofFile
    }
    const isGlobal = isUnpartitioned(partitionSpecOf(this.#table.metadata, file.specId))
    const isEquality = file.content === 'equality-deletes'
    const ofPartition = this.#least.get(partitionKey(file.specId, file.partition))
    const least = isEquality && isGlobal ? this.#leastOfAll : ofPartition
    if (least === undefined) return true
    return isEquality ? sequenceNumber <= least : sequenceNumber < least
  }
}
