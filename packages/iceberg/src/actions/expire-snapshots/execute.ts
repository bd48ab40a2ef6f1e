import type { LoadedTable } from '../../catalogs/catalog.ts'
import { CandidateFiles, marks, type CandidateFile } from '../../snapshot/candidate-files.ts'
import { ReachableWalk, statisticsFilesOf } from '../../snapshot/reachable.ts'
import { PhaseTimer, type ActionCosts, type ActionRun } from '../action.ts'
import { fencepostFolder, pendingParts, readPart, writeDeletionList, type PendingPart } from '../deletion-list.ts'
import { fileKeyOf, insideAny, ownLocations } from '../own-locations.ts'
import { assertGarbageCollected } from '../refuse.ts'
import {
  assertSameTable,
  deleteVerified,
  type DeletedFiles,
  type FailedFile,
  type VerifiedDeletesOptions,
} from '../verified-deletes.ts'
import { commitChunk, ChunkNotCommitted, type CommittedChunk } from './commit-chunk.ts'
import { countUnreached, gather, type CountedFiles, type Gathered } from './gather.ts'
import type { ExpireSnapshotsOptions } from './options.ts'
import { planExpireSnapshots, type ExpireSnapshotsPlan } from './plan.ts'
import { unusedBy } from './unused-metadata.ts'

// The order of an expiry:
//   1. Lists of deletions that interrupted runs have left are finished.
//   2. What only the expiring snapshots reach is gathered, and written as a list of deletions beside the metadata.
//   3. The snapshots are removed, in commits of so many, oldest first. Each commit decides again; see commit-chunk.ts.
//   4. The table is loaded again. What it reaches now is left out, also what was committed a moment ago; the rest is
//      deleted in batches, before each of which the table is loaded once more.
//   5. The list is removed. What could not be deleted is left in a new list, for the next run.
// Nothing is deleted before the commit that makes it unreachable. A run that ends anywhere in between leaves a readable
// table and, from step 2 on, a list that the next run finishes.

export interface ExpireSnapshotsRun extends ActionRun {
  /** Snapshots that one commit removes. Default 10,000. */
  readonly snapshotsPerCommit?: number
  /** Files that are deleted at once, after the table was loaded again. Default 1,000. */
  readonly deleteBatchFiles?: number
  /** Batches that are deleted at the same time. Default 4. */
  readonly maxConcurrentDeletes?: number
  /** Bytes of paths that are held in memory before they go to disk. Default 64 MiB. */
  readonly memoryBytes?: number
}

/** The columns of Spark's procedure, and what else there is to know. */
export interface ExpireSnapshotsResult extends ActionCosts {
  readonly deletedDataFilesCount: number
  readonly deletedPositionDeleteFilesCount: number
  readonly deletedEqualityDeleteFilesCount: number
  readonly deletedManifestFilesCount: number
  readonly deletedManifestListsCount: number
  readonly deletedStatisticsFilesCount: number
  readonly deletedBytes: number
  readonly expiredSnapshotIds: readonly string[]
  /** Snapshots of the plan that the table needed by the time of the commit, or that were gone already. */
  readonly notExpiredSnapshotIds: readonly string[]
  readonly removedRefs: readonly string[]
  readonly failedDeletes: readonly FailedFile[]
  /** Files that were gone already, where the storage says so. */
  readonly missingFiles: number
  /** Files that nothing reaches, and that stay because they are outside the table's own folders. */
  readonly outside: CountedFiles
  /** Manifests and manifest lists of expired snapshots that were gone already: what only they knew is left. */
  readonly missingManifests: readonly string[]
  /** Lists of deletions of interrupted runs that were finished. */
  readonly finishedLists: number
  /** The table after it. */
  readonly table: LoadedTable
}

const action = 'Expiring snapshots'
/** How long a run may take from its list of deletions to its commit. */
const uncommittedMs = 24 * 60 * 60 * 1000

/** Plans and carries out, without counting files in between. */
export async function expireSnapshots(
  table: LoadedTable,
  options: ExpireSnapshotsOptions,
  run: ExpireSnapshotsRun,
): Promise<ExpireSnapshotsResult> {
  return await executeExpireSnapshots(table, await planExpireSnapshots(table, { ...options, countFiles: false }), run)
}

/** Carries a plan out on the table as it is by now: snapshots that have come to be needed since are kept. */
export async function executeExpireSnapshots(
  table: LoadedTable,
  plan: ExpireSnapshotsPlan,
  run: ExpireSnapshotsRun,
): Promise<ExpireSnapshotsResult> {
  const expiry = new Expiry(plan, run)
  return await expiry.run(table)
}

class Expiry {
  readonly #plan: ExpireSnapshotsPlan
  readonly #run: ExpireSnapshotsRun
  readonly #timer = new PhaseTimer()
  readonly #parts: string[] = []
  readonly #chunks: CommittedChunk[] = []
  #bytesRead = 0
  #bytesWritten = 0

  constructor(plan: ExpireSnapshotsPlan, run: ExpireSnapshotsRun) {
    this.#plan = plan
    this.#run = run
  }

  async run(known: LoadedTable): Promise<ExpireSnapshotsResult> {
    const resumed = await this.#timer.time('resume', () => this.#finishPending(known))
    const fresh = await this.#load(resumed.table)
    const expiring = this.#plan.expired.map(({ snapshotId }) => BigInt(snapshotId))
    const { schemaIds, specIds } = this.#plan.unused
    const isNothing = expiring.length + this.#plan.removedRefs.length + schemaIds.length + specIds.length === 0
    if (isNothing) return this.#result(fresh, resumed, undefined)
    const { memoryBytes } = this.#run
    const candidates = await CandidateFiles.open(memoryBytes === undefined ? {} : { memoryBytes })
    try {
      return await this.#expire(fresh, expiring, candidates, resumed)
    } finally {
      await candidates.close()
    }
  }

  async #expire(
    fresh: LoadedTable,
    expiring: readonly bigint[],
    candidates: CandidateFiles,
    resumed: Finished,
  ): Promise<ExpireSnapshotsResult> {
    const { signal } = this.#run
    const gathered = await this.#timer.time('gather', () => gather(fresh, new Set(expiring), candidates, signal))
    const isInside = insideAny(ownLocations(fresh.metadata))
    const mayDelete = (path: string): boolean => this.#plan.settings.deleteOutsideLocation || isInside(path)
    await this.#commitAll(fresh, expiring, candidates, gathered, mayDelete)
    const after = await this.#load(fresh)
    await this.#timer.time('verify', () => gathered.markReachable(after))
    const { outside, byKind } = await countUnreached(candidates, mayDelete)
    const total = Object.values(byKind).reduce((sum, { files }) => sum + files, 0)
    const deleted = await this.#delete(after, candidates, total, gathered.markReachable, mayDelete)
    await this.#dropParts(deleted, this.#parts)
    this.#bytesRead += gathered.bytesRead()
    return this.#result(deleted.table, resumed, { deleted, outside, missing: gathered.missing })
  }

  /** Writes the list and commits. What is certainly not needed of the list is removed when that fails. */
  async #commitAll(
    fresh: LoadedTable,
    expiring: readonly bigint[],
    candidates: CandidateFiles,
    gathered: Gathered,
    mayDelete: (path: string) => boolean,
  ): Promise<void> {
    try {
      this.#run.signal?.throwIfAborted()
      await this.#timer.time('list', () => this.#writeList(fresh, candidates.marked(marks.none, 10_000), mayDelete))
      await this.#timer.time('commit', () => this.#commitChunks(expiring, gathered))
    } catch (error) {
      const isCertain = !(error instanceof ChunkNotCommitted) || error.isCertain
      // Once a commit was applied, the next run needs the list to finish what this one cannot.
      if (isCertain && this.#chunks.length === 0) await fresh.storage.delete(this.#parts).catch(() => {})
      throw error instanceof ChunkNotCommitted ? (error.cause as Error) : error
    }
  }

  async #writeList(
    table: LoadedTable,
    files: AsyncIterable<CandidateFile[]>,
    mayDelete: (path: string) => boolean,
  ): Promise<void> {
    async function* going(): AsyncGenerator<CandidateFile[]> {
      for await (const batch of files) yield batch.filter(({ path }) => mayDelete(path))
    }
    this.#bytesWritten += await writeDeletionList(table, going(), (part) => this.#parts.push(part), this.#run.signal)
  }

  async #commitChunks(expiring: readonly bigint[], gathered: Gathered): Promise<void> {
    const { snapshotsPerCommit = 10_000, onProgress } = this.#run
    const chunks: bigint[][] = []
    for (let at = 0; at < expiring.length; at += snapshotsPerCommit) {
      chunks.push(expiring.slice(at, at + snapshotsPerCommit))
    }
    if (chunks.length === 0) chunks.push([])
    for (const [index, snapshotIds] of chunks.entries()) {
      const isLast = index === chunks.length - 1
      const committed = await commitChunk(
        this.#plan,
        { snapshotIds, ...(isLast && this.#plan.settings.cleanExpiredMetadata && { unused: unusedIn(gathered) }) },
        this.#run,
      )
      if (committed !== undefined) this.#chunks.push(committed)
      onProgress?.({ phase: 'commit', groups: { done: index + 1, total: chunks.length } })
    }
  }

  async #delete(
    table: LoadedTable,
    candidates: CandidateFiles,
    total: number,
    markReachable: VerifiedDeletesOptions['markReachable'],
    mayDelete: (path: string) => boolean,
  ): Promise<DeletedFiles> {
    const { catalog, signal, beforeDelete, maxConcurrentDeletes = 4, deleteBatchFiles = 1000, onProgress } = this.#run
    let done = 0
    const onBatch = (attempted: number): void => {
      done += attempted
      onProgress?.({ phase: 'delete', files: { done, total } })
    }
    const options = { action, catalog, table, candidates, markReachable, mayDelete, signal, beforeDelete, onBatch }
    return await this.#timer.time('delete', () =>
      deleteVerified({ ...options, maxConcurrentDeletes, batchFiles: deleteBatchFiles }),
    )
  }

  /** Removes parts of a list whose files are gone. Those that could not be deleted are written as a new one first. */
  async #dropParts({ failed, table }: DeletedFiles, parts: readonly string[]): Promise<void> {
    if (failed.length > 0) {
      async function* left(): AsyncGenerator<CandidateFile[]> {
        yield failed.map(({ path, kind, bytes }) => ({ path, kind, bytes, modifiedAtMs: 0 }))
      }
      this.#bytesWritten += await writeDeletionList(table, left(), () => {})
    }
    // A part that stays is verified and removed by the next run.
    if (parts.length > 0) await table.storage.delete(parts).catch(() => {})
  }

  /** Lists are read before the table is loaded: whatever a list names was reachable then, or its commit was applied. */
  async #finishPending(known: LoadedTable): Promise<Finished> {
    const pending = await pendingParts(known)
    if (pending.length === 0) return { parts: 0, table: known }
    const { memoryBytes, signal } = this.#run
    const candidates = await CandidateFiles.open(memoryBytes === undefined ? {} : { memoryBytes })
    try {
      const read: PendingPart[] = []
      for (const each of pending) {
        const part = await readPart(known, each.location)
        if (part === undefined) continue
        read.push(each)
        for (const file of part.files) candidates.add(fileKeyOf(file.path), file)
      }
      const table = await this.#load(known)
      const walk = new ReachableWalk(table.storage, { signal })
      const markReachable = async ({ metadata }: LoadedTable): Promise<void> => {
        const mark = ({ path }: { path: string }): void => candidates.mark(fileKeyOf(path), marks.reached)
        for await (const found of walk.all(metadata.snapshots)) found.forEach(mark)
        statisticsFilesOf(metadata).forEach(mark)
      }
      await markReachable(table)
      this.#bytesRead += walk.bytesRead
      const deleted = await this.#delete(table, candidates, candidates.size, markReachable, () => true)
      const finished = await this.#finishedParts(deleted.table, read, candidates)
      await this.#dropParts(deleted, finished)
      return { parts: finished.length, table: deleted.table, deleted }
    } finally {
      await candidates.close()
    }
  }

  /** All but those that a run under way may still need: a file of theirs is reached, and they are young. */
  async #finishedParts(
    table: LoadedTable,
    parts: readonly PendingPart[],
    candidates: CandidateFiles,
  ): Promise<string[]> {
    const { signal } = this.#run
    const now = (await table.storage.now(fencepostFolder(table, 'deletions'), { signal })).getTime()
    const finished: string[] = []
    for (const { location, writtenAt } of parts) {
      const isYoung = now - writtenAt.getTime() < uncommittedMs
      const part = isYoung ? await readPart(table, location) : undefined
      const isNeeded = part?.files.some(({ path }) => candidates.markOf(fileKeyOf(path)) === marks.reached) === true
      if (!isNeeded) finished.push(location)
    }
    return finished
  }

  async #load(known: LoadedTable): Promise<LoadedTable> {
    const { catalog, signal } = this.#run
    const table = await catalog.loadTable(known.identifier, { known, ...(signal !== undefined && { signal }) })
    assertSameTable(action, table, this.#plan.table.uuid === '' ? undefined : this.#plan.table.uuid)
    assertGarbageCollected(action, table)
    return table
  }

  #result(
    table: LoadedTable,
    resumed: Finished,
    own: { deleted: DeletedFiles; outside: CountedFiles; missing: readonly string[] } | undefined,
  ): ExpireSnapshotsResult {
    const runs = [resumed.deleted, own?.deleted].filter((deleted) => deleted !== undefined)
    const count = (...kinds: (keyof DeletedFiles['counts'])[]): number =>
      runs.reduce((sum, { counts }) => sum + kinds.reduce((of, kind) => of + (counts[kind] ?? 0), 0), 0)
    const expired = this.#chunks.flatMap(({ snapshotIds }) => snapshotIds.map(String))
    const isExpired = new Set(expired)
    return {
      deletedDataFilesCount: count('data'),
      deletedPositionDeleteFilesCount: count('position-deletes'),
      deletedEqualityDeleteFilesCount: count('equality-deletes'),
      deletedManifestFilesCount: count('manifest'),
      deletedManifestListsCount: count('manifest-list'),
      deletedStatisticsFilesCount: count('statistics', 'partition-statistics'),
      deletedBytes: runs.reduce((sum, { bytes }) => sum + bytes, 0),
      expiredSnapshotIds: expired,
      notExpiredSnapshotIds: this.#plan.expired.map(({ snapshotId }) => snapshotId).filter((id) => !isExpired.has(id)),
      removedRefs: this.#chunks.flatMap(({ refs }) => refs),
      failedDeletes: runs.flatMap(({ failed }) => failed),
      missingFiles: runs.reduce((sum, { missing }) => sum + missing, 0),
      outside: own?.outside ?? { files: 0, bytes: 0 },
      missingManifests: own?.missing ?? [],
      finishedLists: resumed.parts,
      table,
      bytesRead: this.#bytesRead,
      bytesWritten: this.#bytesWritten,
      phaseSeconds: this.#timer.seconds,
    }
  }
}

interface Finished {
  readonly parts: number
  readonly table: LoadedTable
  readonly deleted?: DeletedFiles
}

/** What is unused once a chunk is gone. Lists of snapshots that came since the walk are read, and what they name marked. */
function unusedIn({ walk, markReachable }: Gathered) {
  return async (table: LoadedTable, expiring: ReadonlySet<bigint>) => {
    const staying = table.metadata.snapshots.filter(({ snapshotId }) => !expiring.has(snapshotId))
    const isStaying = ({ snapshotId }: { snapshotId: bigint }): boolean => !expiring.has(snapshotId)
    const statistics = table.metadata.statistics.filter(isStaying)
    const partitionStatistics = table.metadata.partitionStatistics.filter(isStaying)
    await markReachable({ metadata: { ...table.metadata, snapshots: staying, statistics, partitionStatistics } })
    return unusedBy(table.metadata, expiring, walk.specIds)
  }
}
