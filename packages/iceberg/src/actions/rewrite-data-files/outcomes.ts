import type { Snapshot } from '../../metadata/snapshot.ts'
import type { ActionRun, PhaseTimer } from '../action.ts'
import type { RewriteDataFilesResult } from './execute.ts'
import type { LiveGroup, RewrittenGroup, WantedGroup } from './live-group.ts'
import type { RewriteDataFilesPlan } from './plan.ts'

/** A group, or a part of one, that was not committed. */
export interface UnfinishedGroup {
  readonly number: number
  readonly files: number
  /**
   * `gone`: others have removed or rewritten its files. `refused`: it cannot be read or written exactly. `conflict`:
   * commits of others were in its way every time. `failed`: reading, writing or committing it failed.
   */
  readonly why: 'gone' | 'refused' | 'conflict' | 'failed'
  readonly message?: string
}

/** Counts what becomes of the groups of a plan. */
export class Outcomes {
  readonly #plan: RewriteDataFilesPlan
  readonly #run: ActionRun
  readonly #unfinished: UnfinishedGroup[] = []
  readonly #snapshots: Snapshot[] = []
  readonly #done = { bytes: 0, files: 0, groups: 0 }
  readonly #committed = { rewritten: 0, added: 0, bytes: 0 }
  #bytesRead = 0
  #bytesWritten = 0
  #failedCommits = 0
  #lastError: Error | undefined

  constructor(plan: RewriteDataFilesPlan, run: ActionRun) {
    this.#plan = plan
    this.#run = run
  }

  wrote(bytes: number, ofBytes: number): void {
    this.#bytesWritten += bytes
    this.#done.bytes = Math.min(this.#plan.bytes, this.#done.bytes + Math.round(ofBytes))
    this.#report('rewrite')
  }

  rewrote({ files }: LiveGroup): void {
    this.#bytesRead += bytesOf(files)
    this.#done.files = Math.min(this.#plan.files, this.#done.files + files.length)
    this.#done.groups = Math.min(this.#plan.groups.length, this.#done.groups + 1)
    this.#report('rewrite')
  }

  /** Notes which files of the groups were not found any more. */
  gone(wanted: readonly WantedGroup[], live: readonly LiveGroup[]): void {
    const found = new Set(live.flatMap(({ files }) => files.map(({ file }) => file.filePath)))
    for (const { number, paths } of wanted) {
      const files = paths.filter((path) => !found.has(path)).length
      if (files > 0) this.#unfinished.push({ number, files, why: 'gone' })
    }
  }

  failed({ number, files }: LiveGroup, why: 'refused' | 'conflict' | 'failed', error: Error): undefined {
    this.#unfinished.push({ number, files: files.length, why, message: error.message })
    if (why !== 'refused') this.#lastError = error
  }

  committed(groups: readonly RewrittenGroup[], snapshot: Snapshot): void {
    this.#snapshots.push(snapshot)
    for (const { files, added } of groups) {
      this.#committed.rewritten += files.length
      this.#committed.added += added.length
      this.#committed.bytes += bytesOf(files)
    }
    this.#report('commit')
  }

  /** Throws when more commits have failed than may. */
  commitFailed(groups: readonly RewrittenGroup[], error: Error): void {
    for (const group of groups) this.failed(group, 'failed', error)
    this.#failedCommits += 1
    const { options } = this.#plan.settings
    const allowed = options['partial-progress.max-failed-commits'] ?? options['partial-progress.max-commits']
    if (this.#failedCommits > allowed) throw error
  }

  /** A run that could do nothing of what it was to do has failed. */
  assertSome(): void {
    if (this.#snapshots.length === 0 && this.#lastError !== undefined) throw this.#lastError
  }

  result(timer: PhaseTimer): RewriteDataFilesResult {
    return {
      rewrittenDataFilesCount: this.#committed.rewritten,
      addedDataFilesCount: this.#committed.added,
      rewrittenBytesCount: this.#committed.bytes,
      failedDataFilesCount: this.#unfinished.reduce((sum, { why, files }) => sum + (why === 'gone' ? 0 : files), 0),
      removedDeleteFilesCount: this.#snapshots.reduce(
        (sum, { summary }) => sum + Number(summary?.['removed-delete-files'] ?? 0),
        0,
      ),
      snapshotIds: this.#snapshots.map(({ snapshotId }) => String(snapshotId)),
      unfinished: this.#unfinished,
      bytesRead: this.#bytesRead,
      bytesWritten: this.#bytesWritten,
      phaseSeconds: timer.seconds,
    }
  }

  #report(phase: string): void {
    const { bytes, files, groups } = this.#plan
    this.#run.onProgress?.({
      phase,
      bytes: { done: this.#done.bytes, total: bytes },
      files: { done: this.#done.files, total: files },
      groups: { done: this.#done.groups, total: groups.length },
    })
  }
}

function bytesOf(files: LiveGroup['files']): number {
  return files.reduce((sum, { file }) => sum + file.fileSizeInBytes, 0)
}
