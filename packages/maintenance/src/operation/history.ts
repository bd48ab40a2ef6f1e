import type { Attempt } from '@fencepost/engine'
import type { ActionProgress } from '@fencepost/iceberg'
import type { ActionName } from './action-options.ts'
import type { DoneAction } from './done.ts'
import type { PlannedAction } from './planned.ts'

const groupsEveryMs = 1_000

/** Writes the lines of a maintenance job's history, one after another. */
export class MaintenanceHistory {
  readonly #attempt: Attempt
  #groups = 0
  #groupsAt = Number.NEGATIVE_INFINITY
  #writing: Promise<unknown> = Promise.resolve()

  constructor(attempt: Attempt) {
    this.#attempt = attempt
  }

  planned({ action, message, files, bytes, snapshots, groups }: PlannedAction): Promise<unknown> {
    return this.#emit('planned', action, message, { files, bytes, snapshots, groups })
  }

  /** Notes finished groups, at most once a second. */
  moved(action: ActionName, { phase, groups }: ActionProgress): void {
    if (groups === undefined || groups.done <= this.#groups) return
    if (groups.done < groups.total && performance.now() - this.#groupsAt < groupsEveryMs) return
    this.#groups = groups.done
    this.#groupsAt = performance.now()
    const message = `${groups.done} of ${groups.total} groups`
    void this.#emit('group_done', action, message, { phase, done: groups.done, total: groups.total })
  }

  /** Another commit came first: the action waits, and builds its commit again. */
  conflict(action: ActionName, waitMs: number): Promise<unknown> {
    return this.#emit('conflict', action, 'Another commit came first', { wait_ms: Math.round(waitMs) }, 'warning')
  }

  retried(action: ActionName): Promise<unknown> {
    return this.#emit('retried', action, 'Tries the commit again on the fresh table', {})
  }

  async done(action: ActionName, { message, snapshotIds, deletedFiles }: DoneAction): Promise<void> {
    if (snapshotIds.length > 0) {
      if (action === 'rewrite_data_files') {
        await this.#emit('proof_checked', action, 'The rows that went in are the rows that came out', {})
      }
      await this.#emit('committed', action, message, { snapshot_ids: snapshotIds.slice(-100) })
    }
    if (deletedFiles > 0) await this.#emit('files_deleted', action, message, { files: deletedFiles })
    this.#groups = 0
  }

  failed(action: ActionName, error: string): Promise<unknown> {
    return this.#emit('action_failed', action, error, {}, 'error')
  }

  /** Waits for what was not waited for. */
  async settle(): Promise<void> {
    await this.#writing
  }

  #emit(
    event: string,
    action: ActionName,
    message: string,
    fields: Record<string, string | number | readonly string[]>,
    level: 'info' | 'warning' | 'error' = 'info',
  ): Promise<unknown> {
    const options = { message: message.slice(0, 1_000), level, fields: { action, ...fields } }
    const write = () => this.#attempt.emit(`maintenance.${event}`, options)
    // A line that cannot be written must not end the action: its commit and its step have the fence.
    this.#writing = this.#writing.then(write).catch(() => {})
    return this.#writing
  }
}
