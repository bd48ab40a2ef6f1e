import type { LoadedTable } from '../../catalogs/catalog.ts'
import { IcebergError } from '../../errors.ts'
import type { ContentFile } from '../../manifests/content-file.ts'
import { partitionKey } from '../../manifests/partition-key.ts'
import { currentSnapshot, mainBranch } from '../../metadata/table-metadata.ts'
import { DuckDb } from '../../parquet/duckdb.ts'
import { removeFiles } from '../../write/remove-files.ts'
import { PhaseTimer, type ActionCosts, type ActionRun } from '../action.ts'
import { assertPlannedFor } from '../same-table.ts'
import { commitDeletes } from './commit.ts'
import { deleteEntries, isVector, type DeleteEntry } from './delete-entries.ts'
import type { DeleteGroup, RewritePositionDeletesPlan } from './plan.ts'
import { rewriteDeleteGroups, sizeOf, type LiveDeleteGroup, type RewrittenDeletes } from './rewrite-groups.ts'

export interface RewritePositionDeletesRun extends ActionRun {
  /** Reads and writes delete files. Default: one of its own. */
  readonly duckDb?: DuckDb
}

/** A group that was not committed. Its deletes are as they were. */
export interface UnfinishedDeletes {
  readonly group: number
  readonly partition: string
  readonly why: 'refused' | 'conflict' | 'failed'
  readonly message: string
}

/** The columns of Spark's procedure, and what it took. */
export interface RewritePositionDeletesResult extends ActionCosts {
  readonly rewrittenDeleteFilesCount: number
  readonly addedDeleteFilesCount: number
  readonly rewrittenBytesCount: number
  readonly addedBytesCount: number
  /** Oldest first. */
  readonly snapshotIds: readonly string[]
  readonly unfinished: readonly UnfinishedDeletes[]
}

/** How often a group is read again that another commit got in the way of. */
const rounds = 3
/** Groups that are read and written before the data files they name are looked for, all at once. */
const groupsAtOnce = 64

/**
 * Carries out a plan of `planRewritePositionDeletes`, on the main branch. Groups are read as the branch is now: delete
 * files that have gone since the plan are left out.
 */
export async function executeRewritePositionDeletes(
  table: LoadedTable,
  plan: RewritePositionDeletesPlan,
  run: RewritePositionDeletesRun,
): Promise<RewritePositionDeletesResult> {
  run.signal?.throwIfAborted()
  assertPlannedFor(table, plan.table)
  if (plan.groups.length === 0) return new Rewriting(table, plan, run, undefined).result
  const own = run.duckDb === undefined ? await DuckDb.open() : undefined
  try {
    const rewriting = new Rewriting(table, plan, run, run.duckDb ?? own)
    await rewriting.run()
    return rewriting.result
  } finally {
    await own?.close()
  }
}

class Rewriting {
  #table: LoadedTable
  readonly #plan: RewritePositionDeletesPlan
  readonly #run: RewritePositionDeletesRun
  readonly #duckDb: DuckDb | undefined
  readonly #timer = new PhaseTimer()
  readonly #committed: RewrittenDeletes[] = []
  readonly #snapshotIds: string[] = []
  readonly #unfinished: UnfinishedDeletes[] = []
  readonly #rewrittenGroups = new Set<number>()
  #bytesRead = 0
  #bytesWritten = 0

  constructor(
    table: LoadedTable,
    plan: RewritePositionDeletesPlan,
    run: RewritePositionDeletesRun,
    duckDb: DuckDb | undefined,
  ) {
    this.#table = table
    this.#plan = plan
    this.#run = run
    this.#duckDb = duckDb
  }

  async run(): Promise<void> {
    let waiting: readonly DeleteGroup[] = this.#plan.groups
    for (let round = 1; round <= rounds && waiting.length > 0; round += 1) {
      if (round > 1) await this.#refresh()
      waiting = await this.#round(waiting)
    }
    for (const group of waiting) {
      this.#leave(
        group,
        'conflict',
        'Another commit changed its deletes every time. Rewrite it when writers are quiet.',
      )
    }
  }

  get result(): RewritePositionDeletesResult {
    const added = this.#committed.flatMap((group) => group.added)
    const replaced = this.#committed.flatMap((group) => group.replaced)
    const sum = (files: readonly ContentFile[]): number => files.reduce((total, file) => total + sizeOf(file), 0)
    return {
      rewrittenDeleteFilesCount: replaced.length,
      addedDeleteFilesCount: added.length,
      rewrittenBytesCount: sum(replaced.map(({ file }) => file)),
      addedBytesCount: sum(added),
      snapshotIds: this.#snapshotIds,
      unfinished: this.#unfinished,
      bytesRead: this.#bytesRead,
      bytesWritten: this.#bytesWritten,
      phaseSeconds: this.#timer.seconds,
    }
  }

  async #refresh(): Promise<void> {
    const { signal, catalog } = this.#run
    this.#table = await catalog.loadTable(this.#table.identifier, signal === undefined ? {} : { signal })
    assertPlannedFor(this.#table, this.#plan.table)
  }

  /** Returns the groups that must be read again. */
  async #round(groups: readonly DeleteGroup[]): Promise<DeleteGroup[]> {
    const { settings } = this.#plan
    const again: DeleteGroup[] = []
    const perCommit = settings.partialProgress
      ? Math.ceil(this.#plan.groups.length / settings.maxCommits)
      : groups.length
    let ready: RewrittenDeletes[] = []
    const table = this.#table
    const start = currentSnapshot(table.metadata, mainBranch)
    if (start === undefined) return []
    const written = new Set<string>()
    try {
      const entries = await this.#timer.time('plan', () => deleteEntries(table, start, this.#run.signal))
      const byPath = new Map(entries.filter((entry) => !isVector(entry)).map((entry) => [entry.file.filePath, entry]))
      const live = groups.flatMap((group): LiveDeleteGroup[] => {
        const found = group.files.flatMap(({ path }) => byPath.get(path) ?? [])
        if (found.length === 0) return []
        return [{ group, entries: table.metadata.formatVersion < 3 ? found : ofPartitions(found, byPath.values()) }]
      })
      const duckDb = this.#duckDb
      if (duckDb === undefined) return []
      const context = { table, start, entries, settings, duckDb, signal: this.#run.signal, claimed: new Set<string>() }
      const step = Math.min(groupsAtOnce, Math.max(1, perCommit))
      for (let at = 0; at < live.length; at += step) {
        const outcomes = await this.#timer.time('rewrite', () =>
          rewriteDeleteGroups(context, live.slice(at, at + step), (files) => {
            for (const { filePath } of files) written.add(filePath)
          }),
        )
        for (const each of outcomes) {
          if (each.outcome === 'rewritten') ready.push(this.#rewrote(each))
          else if (each.outcome === 'later') again.push(each.group)
          else this.#leave(each.group, 'refused', each.message)
        }
        if (ready.length < perCommit && at + step < live.length) continue
        const committing = ready
        ready = []
        for (const { added } of committing) for (const { filePath } of added) written.delete(filePath)
        again.push(...(await this.#timer.time('commit', () => this.#commit(table, start, committing))))
      }
      return again
    } catch (error) {
      if (written.size > 0) await removeFiles(table, [...written])
      throw error
    }
  }

  async #commit(
    table: LoadedTable,
    start: NonNullable<ReturnType<typeof currentSnapshot>>,
    groups: readonly RewrittenDeletes[],
  ): Promise<DeleteGroup[]> {
    if (groups.length === 0) return []
    try {
      const { committed, conflicts, snapshot } = await commitDeletes(table, start, groups, this.#run)
      this.#committed.push(...committed)
      if (snapshot !== undefined) this.#snapshotIds.push(String(snapshot.snapshotId))
      return conflicts.map(({ group }) => group)
    } catch (error) {
      const isLost = error instanceof IcebergError && error.code === 'commit_conflict'
      if (!isLost || !this.#plan.settings.partialProgress) throw error
      for (const { group } of groups) this.#leave(group, 'failed', error.message)
      return []
    }
  }

  #rewrote(group: RewrittenDeletes): RewrittenDeletes {
    this.#bytesRead += group.bytesRead
    this.#bytesWritten += group.added.reduce((sum, file) => sum + sizeOf(file), 0)
    this.#rewrittenGroups.add(group.group.number)
    this.#run.onProgress?.({
      phase: 'rewrite',
      groups: { done: this.#rewrittenGroups.size, total: this.#plan.groups.length },
    })
    return group
  }

  #leave({ number, partition }: DeleteGroup, why: UnfinishedDeletes['why'], message: string): void {
    this.#unfinished.push({ group: number, partition, why, message })
  }
}

/** A vector stands for all position deletes of its data file. So in v3 all files of a partition are rewritten together. */
function ofPartitions(some: readonly DeleteEntry[], all: Iterable<DeleteEntry>): DeleteEntry[] {
  const keyOf = ({ file }: DeleteEntry): string => partitionKey(file.specId, file.partition)
  const keys = new Set(some.map(keyOf))
  return [...all].filter((entry) => keys.has(keyOf(entry)))
}
