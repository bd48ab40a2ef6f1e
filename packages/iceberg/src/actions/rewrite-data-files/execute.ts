import { tableName, type LoadedTable } from '../../catalogs/catalog.ts'
import { IcebergError } from '../../errors.ts'
import { currentSnapshot } from '../../metadata/table-metadata.ts'
import type { Snapshot } from '../../metadata/snapshot.ts'
import { DuckDb } from '../../parquet/duckdb.ts'
import { forEachLimited } from '../../storage/each.ts'
import { Staging } from '../../storage/staging.ts'
import { removeFiles } from '../../write/remove-files.ts'
import { PhaseTimer, type ActionCosts, type ActionRun } from '../action.ts'
import { commitGroups } from './commit.ts'
import { removeDanglingDeletes } from './dangling.ts'
import { findLiveGroups, pathsOfOnePass, rewriteContext, type LiveGroup, type RewrittenGroup } from './live-group.ts'
import type { RewriteDataFilesPlan } from './plan.ts'
import { RowTallies } from './proof.ts'
import { rewriteGroup } from './rewrite-group.ts'
import { Outcomes, type UnfinishedGroup } from './outcomes.ts'
import { GroupQueue } from './group-queue.ts'

/** What a rewrite did: the columns of Spark's procedure, and more. */
export interface RewriteDataFilesResult extends ActionCosts {
  readonly rewrittenDataFilesCount: number
  readonly addedDataFilesCount: number
  readonly rewrittenBytesCount: number
  /** Files of groups that failed, or that cannot be read or written exactly. */
  readonly failedDataFilesCount: number
  readonly removedDeleteFilesCount: number
  /** Oldest first; as text, since they have 64 bits. */
  readonly snapshotIds: readonly string[]
  /** Groups that were not committed, with the reason. */
  readonly unfinished: readonly UnfinishedGroup[]
}

/** Memory that a group needs to be rewritten beside others. */
const groupMemoryBytes = 192 * 1024 ** 2

/**
 * Rewrites the groups of a plan. They are read as the branch is now, not as it was planned: what has gone since is left
 * out. Without partial progress one commit has them all, but for groups that another commit gets in the way of. Those are
 * read again and committed after it, the second time in halves.
 */
export async function executeRewriteDataFiles(
  table: LoadedTable,
  plan: RewriteDataFilesPlan,
  run: ActionRun,
): Promise<RewriteDataFilesResult> {
  run.signal?.throwIfAborted()
  assertSameTable(table, plan)
  const outcomes = new Outcomes(plan, run)
  if (plan.groups.length === 0) return outcomes.result(new PhaseTimer())
  const { options } = plan.settings
  const duckDb = await DuckDb.open({ memoryBytes: options['memory-budget-bytes'] })
  try {
    const staging = await Staging.open({ maxBytes: options['staging-budget-bytes'] })
    try {
      const tools = { duckDb, staging, tallies: await RowTallies.on(duckDb) }
      return await new Execution(table, plan, run, outcomes, tools).run()
    } finally {
      await staging.close()
    }
  } finally {
    await duckDb.close()
  }
}

interface Tools {
  readonly duckDb: DuckDb
  readonly staging: Staging
  readonly tallies: RowTallies
}

class Execution {
  readonly #plan: RewriteDataFilesPlan
  readonly #run: ActionRun
  readonly #outcomes: Outcomes
  readonly #tools: Tools
  readonly #timer = new PhaseTimer()
  readonly #queue: GroupQueue
  readonly #stop = new AbortController()
  readonly #signal: AbortSignal
  /** Written, and not yet committed. */
  #waiting: RewrittenGroup[] = []
  #committing: Promise<void> = Promise.resolve()
  #table: LoadedTable

  constructor(table: LoadedTable, plan: RewriteDataFilesPlan, run: ActionRun, outcomes: Outcomes, tools: Tools) {
    this.#table = table
    this.#plan = plan
    this.#run = run
    this.#outcomes = outcomes
    this.#tools = tools
    this.#queue = new GroupQueue(plan.groups)
    const own = this.#stop.signal
    this.#signal = run.signal === undefined ? own : AbortSignal.any([own, run.signal])
  }

  async run(): Promise<RewriteDataFilesResult> {
    try {
      while (this.#queue.size > 0) {
        await this.#timer.time('load', () => this.#refresh())
        const start = currentSnapshot(this.#table.metadata, this.#plan.settings.branch)
        if (start === undefined) break
        await this.#round(start)
      }
      this.#outcomes.assertSome()
      if (this.#plan.settings.options['remove-dangling-deletes']) await this.#removeDanglingDeletes()
      return this.#outcomes.result(this.#timer)
    } catch (error) {
      await this.#committing.catch(() => {})
      await removeFiles(
        this.#table,
        this.#waiting.flatMap((group) => group.added),
      )
      throw error
    }
  }

  async #removeDanglingDeletes(): Promise<void> {
    const { branch } = this.#plan.settings
    const run = { ...this.#run, signal: this.#signal }
    const removed = await this.#timer.time('dangling', () => removeDanglingDeletes(this.#table, branch, run))
    if (removed !== undefined) this.#outcomes.committed([], removed)
  }

  async #refresh(): Promise<void> {
    const { identifier } = this.#table
    const options = { known: this.#table, signal: this.#signal }
    this.#table = await this.#run.catalog.loadTable(identifier, options)
    assertSameTable(this.#table, this.#plan)
  }

  /** Rewrites everything that waits, as it is in one snapshot. */
  async #round(start: Snapshot): Promise<void> {
    for (let wanted = this.#queue.take(pathsOfOnePass); wanted.length > 0; wanted = this.#queue.take(pathsOfOnePass)) {
      const taken = wanted
      const live = await this.#timer.time('plan', () =>
        findLiveGroups(this.#table, start, taken, this.#signal, this.#copies),
      )
      this.#outcomes.gone(wanted, live)
      await this.#timer.time('rewrite', () => this.#rewriteAll(live))
      if (this.#commitsPartly) await this.#commitWaiting()
    }
    await this.#commitWaiting()
    this.#queue.release()
  }

  /** Whether files may be copied: new ones take their statistics from those of the old ones. */
  get #copies(): boolean {
    return this.#plan.groups.some(({ how }) => how === 'copy')
  }

  get #commitsPartly(): boolean {
    return this.#plan.settings.options['partial-progress.enabled']
  }

  async #rewriteAll(groups: readonly LiveGroup[]): Promise<void> {
    const { options } = this.#plan.settings
    const fitting = Math.max(1, Math.floor(options['memory-budget-bytes'] / groupMemoryBytes))
    const concurrency = Math.min(options['max-concurrent-file-group-rewrites'], fitting)
    const perCommit = Math.ceil(this.#plan.groups.length / options['partial-progress.max-commits'])
    await forEachLimited(groups, concurrency, async (group) => {
      const rewritten = await this.#rewrite(group)
      if (rewritten === undefined) return
      this.#waiting.push(rewritten)
      this.#outcomes.rewrote(group)
      if (this.#commitsPartly && this.#waiting.length >= perCommit) await this.#commitWaiting()
    })
  }

  /** Undefined: the group is refused, has failed, or is to be read again. */
  async #rewrite(group: LiveGroup): Promise<RewrittenGroup | undefined> {
    const table = this.#table
    try {
      const { added, files, left } = await rewriteGroup(
        {
          table,
          context: rewriteContext(table, group.start),
          settings: this.#plan.settings,
          ...this.#tools,
          copies: this.#copies,
          signal: this.#signal,
          onWritten: (bytes, ofBytes) => this.#outcomes.wrote(bytes, ofBytes),
        },
        group.files,
      )
      if (left !== undefined) this.#outcomes.failed({ ...group, files: left.files }, 'refused', left.error)
      return { ...group, files, added, formatVersion: table.metadata.formatVersion }
    } catch (error) {
      if (this.#signal.aborted) throw error
      if (isRefusal(error)) return this.#outcomes.failed(group, 'refused', error)
      const isProof = error instanceof IcebergError && error.code === 'proof_failed'
      if (!isProof && (await this.#hasChanged(group))) return this.#again(group, error as Error)
      if (!isProof && this.#commitsPartly) return this.#outcomes.failed(group, 'failed', error as Error)
      this.#stop.abort(error)
      throw error
    }
  }

  /** Whether files of a group have gone meanwhile: no wonder then that they could not be read. */
  async #hasChanged(group: LiveGroup): Promise<boolean> {
    const now = await this.#run.catalog.loadTable(this.#table.identifier, { signal: this.#signal })
    const head = currentSnapshot(now.metadata, this.#plan.settings.branch)
    if (head === undefined || head.snapshotId === group.start.snapshotId) return false
    const paths = group.files.map(({ file }) => file.filePath)
    const [live] = await findLiveGroups(now, head, [{ ...group, paths }], this.#signal)
    return live === undefined || live.files.length < paths.length
  }

  /** Commits are made one after the other, each of what has been written by then. */
  async #commitWaiting(): Promise<void> {
    const before = this.#committing
    const committed = before.then(async () => {
      this.#signal.throwIfAborted()
      const groups = this.#waiting
      if (groups.length === 0) return
      this.#waiting = []
      await this.#timer.time('commit', () => this.#commit(groups))
    })
    this.#committing = committed.catch((error: unknown) => this.#stop.abort(error))
    await committed
  }

  async #commit(groups: readonly RewrittenGroup[]): Promise<void> {
    const { settings } = this.#plan
    const { duckDb, staging } = this.#tools
    const reading = { duckDb, staging, signal: this.#signal }
    const run = { ...this.#run, signal: this.#signal }
    const { committed, conflicts, snapshot, error } = await commitGroups(this.#table, groups, settings, run, reading)
    if (snapshot !== undefined) this.#outcomes.committed(committed, snapshot)
    for (const { group, why } of conflicts) this.#again(group, conflictError(this.#table, why))
    if (error === undefined) return
    const isRefused = error instanceof IcebergError && error.code === 'commit_refused'
    if (isRefused || !this.#commitsPartly) throw error
    const conflicted = new Set(conflicts.map(({ group }) => group))
    const lost = groups.filter((group) => !conflicted.has(group))
    this.#outcomes.commitFailed(lost, error)
  }

  #again(group: LiveGroup, error: Error): undefined {
    if (!this.#queue.again(group)) this.#outcomes.failed(group, 'conflict', error)
  }
}

/** What cannot be read or written exactly is left as it is; the other groups are none the worse for it. */
function isRefusal(error: unknown): error is IcebergError {
  return (
    error instanceof IcebergError &&
    ['scan_unsupported', 'type_unsupported', 'metadata_unsupported', 'staging_full'].includes(error.code)
  )
}

function conflictError({ identifier }: LoadedTable, why: string): Error {
  return new IcebergError(
    'commit_conflict',
    `Another commit to ${tableName(identifier)} was in the way of a group every time (${why}). Rewrite it when its writers are quiet.`,
  )
}

function assertSameTable({ identifier, metadata }: LoadedTable, { table }: RewriteDataFilesPlan): void {
  if ((metadata.tableUuid ?? '') === table.uuid) return
  throw new IcebergError(
    'requirement_failed',
    `${tableName(identifier)} is not the table that the plan was made for: it was dropped, and made anew. Plan again.`,
    { details: { expected: table.uuid, found: metadata.tableUuid } },
  )
}
