import type { Catalog, CommitRequest, LoadedTable, TableIdentifier } from '../catalogs/catalog.ts'
import type { CommitOptions } from '../commit/index.ts'

// Every action has two halves: `plan…(table, options)` reads the table and returns plain data, which prints as JSON;
// `execute…(table, plan, run)` carries exactly that plan out. Between the two the table may change: what a plan says is
// validated again against the fresh table at every commit.

/** The table a plan was made for. Numbers of 64 bits are decimal text, so that a plan prints as JSON. */
export interface PlannedTable {
  readonly identifier: TableIdentifier
  readonly uuid: string
  /** The snapshot that was planned on; undefined of a table without one. */
  readonly snapshotId?: string
}

/** What every action is given beside its plan. */
export interface ActionRun {
  readonly catalog: Catalog
  /** Ends the action within a second: what it wrote and did not commit is removed. */
  readonly signal?: AbortSignal
  /** Called immediately before every commit; a commit it refuses is not made. */
  readonly guard?: CommitRequest['guard']
  /** JDBC catalogs only: runs every commit, with its guard, in a transaction of the caller. */
  readonly inTransaction?: CommitRequest['inTransaction']
  /**
   * Called immediately before every batch of files that an expiry or a removal of orphans deletes or moves. When it
   * throws, the batch stays and the action ends with that error.
   */
  readonly beforeDelete?: () => Promise<void>
  /** Goes into the summary of every snapshot that the action makes. */
  readonly summary?: Readonly<Record<string, string>>
  readonly onProgress?: (progress: ActionProgress) => void
  /** Waits between the tries of a commit. Default: as the table's properties say. */
  readonly pause?: (ms: number) => Promise<void>
}

export interface DoneOf {
  readonly done: number
  readonly total: number
}

export interface ActionProgress {
  /** The same names as in the result's `phaseSeconds`. */
  readonly phase: string
  readonly bytes?: DoneOf
  readonly files?: DoneOf
  readonly groups?: DoneOf
}

/** What every action reports beside the columns of its Spark procedure. */
export interface ActionCosts {
  readonly bytesRead: number
  readonly bytesWritten: number
  readonly phaseSeconds: Readonly<Record<string, number>>
}

export function plannedTable({ identifier, metadata }: LoadedTable, snapshotId?: bigint): PlannedTable {
  return {
    identifier,
    uuid: metadata.tableUuid ?? '',
    ...(snapshotId !== undefined && { snapshotId: String(snapshotId) }),
  }
}

/** The options of every commit of an action, to the table that it was planned for. */
export function commitOptionsOf(
  { guard, inTransaction, signal, pause }: ActionRun,
  tableUuid: string | undefined,
): CommitOptions {
  return {
    tableUuid,
    ...(guard !== undefined && { guard }),
    ...(inTransaction !== undefined && { inTransaction }),
    ...(signal !== undefined && { signal }),
    ...(pause !== undefined && { pause }),
  }
}

/** Adds up how long each phase of an action takes. */
export class PhaseTimer {
  readonly #seconds: Record<string, number> = {}

  async time<T>(phase: string, work: () => Promise<T>): Promise<T> {
    const startedAt = performance.now()
    try {
      return await work()
    } finally {
      this.#seconds[phase] = (this.#seconds[phase] ?? 0) + (performance.now() - startedAt) / 1000
    }
  }

  get seconds(): Readonly<Record<string, number>> {
    return { ...this.#seconds }
  }
}
