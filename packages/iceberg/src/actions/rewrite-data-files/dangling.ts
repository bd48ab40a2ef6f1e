import type { LoadedTable } from '../../catalogs/catalog.ts'
import { commitTable } from '../../commit/index.ts'
import { fileKey, type ManifestEntry } from '../../manifests/content-file.ts'
import { partitionKey } from '../../manifests/partition-key.ts'
import { partitionTypesOf } from '../../manifests/partition-type.ts'
import type { Snapshot } from '../../metadata/snapshot.ts'
import { currentSnapshot, partitionSpecOf } from '../../metadata/table-metadata.ts'
import { isUnpartitioned } from '../../schema/partition-spec.ts'
import { manifestsOf } from '../../snapshot/live-files.ts'
import { readManifests } from '../../snapshot/read-manifests.ts'
import { buildSnapshot } from '../../write/build-snapshot.ts'
import { commitOptionsOf, type ActionRun } from '../action.ts'

// Deletes that can match nothing any more, as Spark's remove-dangling-deletes finds them: position deletes that are older
// than every data file of their partition, equality deletes that are not newer than one, deletes of a partition without
// data files, and vectors of files that are not live. Unlike there, equality deletes of an unpartitioned spec are kept
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

async function danglingDeletes(table: LoadedTable, head: Snapshot, signal?: AbortSignal): Promise<ManifestEntry[]> {
  const deletes = new Map<string, ManifestEntry>()
  for await (const entry of entriesOf(table, head, 'deletes', signal)) deletes.set(fileKey(entry.file), entry)
  if (deletes.size === 0) return []
  const data = new LiveData(table, [...deletes.values()])
  for await (const entry of entriesOf(table, head, 'data', signal)) data.note(entry)
  return [...deletes.values()].filter((entry) => data.isDangling(entry))
}

async function* entriesOf(
  table: LoadedTable,
  head: Snapshot,
  content: 'data' | 'deletes',
  signal: AbortSignal | undefined,
): AsyncGenerator<ManifestEntry> {
  const manifests = (await manifestsOf(table, head)).filter((manifest) => manifest.content === content)
  const partitionOf = (specId: number) => partitionTypesOf(table.metadata, specId)
  for await (const { entries } of readManifests(table.storage, manifests, { partitionOf, statistics: false, signal })) {
    yield* entries
  }
}

class LiveData {
  readonly #table: LoadedTable
  /** The lowest sequence number in each partition that has deletes. */
  readonly #least = new Map<string, bigint | undefined>()
  readonly #referenced = new Map<string, boolean>()
  #leastOfAll: bigint | undefined

  constructor(table: LoadedTable, deletes: readonly ManifestEntry[]) {
    this.#table = table
    for (const { file } of deletes) {
      if (file.contentOffset === undefined) this.#least.set(partitionKey(file.specId, file.partition), undefined)
      else this.#referenced.set(file.referencedDataFile ?? '', false)
    }
  }

  note({ file, sequenceNumber }: ManifestEntry): void {
    const key = partitionKey(file.specId, file.partition)
    const least = this.#least.get(key)
    if (this.#least.has(key) && (least === undefined || sequenceNumber < least)) this.#least.set(key, sequenceNumber)
    if (this.#leastOfAll === undefined || sequenceNumber < this.#leastOfAll) this.#leastOfAll = sequenceNumber
    if (this.#referenced.has(file.filePath)) this.#referenced.set(file.filePath, true)
  }

  isDangling({ file, sequenceNumber }: ManifestEntry): boolean {
    if (file.contentOffset !== undefined) return this.#referenced.get(file.referencedDataFile ?? '') === false
    const isGlobal = isUnpartitioned(partitionSpecOf(this.#table.metadata, file.specId))
    const isEquality = file.content === 'equality-deletes'
    const ofPartition = this.#least.get(partitionKey(file.specId, file.partition))
    const least = isEquality && isGlobal ? this.#leastOfAll : ofPartition
    if (least === undefined) return true
    return isEquality ? sequenceNumber <= least : sequenceNumber < least
  }
}
