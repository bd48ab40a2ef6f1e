import type { CommitRequest, LoadedTable } from '../catalogs/catalog.ts'
import type { Snapshot } from '../metadata/snapshot.ts'
import { stringifyJson } from '../json/json.ts'
import { meetsRequirements } from '../metadata/requirements.ts'
import { tableMetadataToJson } from '../metadata/table-metadata-json.ts'
import type { TableMetadata } from '../metadata/table-metadata.ts'
import { showsUpdates } from './applied.ts'
import type { BuiltCommit } from './commit.ts'

// Every request that was sent is remembered until the end. A gateway may repeat a request: the first copy is applied and
// the second is answered with a conflict. So "not applied" is only believed once the fresh table does not show it, and
// until then none of its files is removed. The first copy may also still be under way when the second is answered ("lock
// held", "too many requests"). So while the table meets all requirements of such a request, its outcome is unknown.
// Tries of one change may make snapshots of the same id, of which the table takes one. Its manifest list tells which try
// it was made in. Once the snapshot has been expired nobody can tell, and the files of all those tries are kept.

/** A request that was sent, and what may have become of it. */
export interface SentCommit {
  readonly base: LoadedTable
  readonly built: BuiltCommit
  readonly request: CommitRequest
  /**
   * refused: the catalog was never asked, so it is not applied.
   * answered: the catalog said that it is not applied.
   * unknown: nobody said what became of it, and it may still be applied.
   * overtaken: nobody said, and the table has moved on so that it can no longer be applied.
   */
  state: 'refused' | 'answered' | 'unknown' | 'overtaken'
  /** The catalog's answer holds for every copy of the request. */
  final: boolean
  /** Whether the table that was loaded last would still take it. */
  possible: boolean
}

export class SentCommits {
  readonly #sent: SentCommit[] = []
  /** Files of ours that a table which was loaded refers to. */
  readonly #referred = new Set<string>()

  add(base: LoadedTable, built: BuiltCommit, request: CommitRequest): SentCommit {
    const sent: SentCommit = { base, built, request, state: 'unknown', final: false, possible: true }
    this.#sent.push(sent)
    return sent
  }

  /** Whether the fresh table has to be looked at before it can be said that none is applied. */
  get mayBeApplied(): boolean {
    return this.#sent.some((sent) => sent.state === 'answered' || sent.state === 'unknown')
  }

  /** Whether one of them may still be applied, as far as the tables that were loaded show. */
  get mayStillApply(): boolean {
    return this.#sent.some((sent) => sent.state === 'unknown' || mayArrive(sent))
  }

  /** Compares all of them with the table as it is now, and returns the one it shows. */
  appliedIn({ metadata }: LoadedTable): SentCommit | undefined {
    this.noteTable(metadata)
    const shown = this.#sent.filter((sent) => sent.state !== 'refused' && isApplied(sent, metadata))
    const applied = shown.find((sent) => this.#isNamed(sent)) ?? shown.at(-1)
    if (applied !== undefined) return applied
    for (const sent of this.#sent) if (sent.state === 'unknown' && !sent.possible) sent.state = 'overtaken'
    return undefined
  }

  /** Whether a table that was loaded has the snapshot as this try has made it. */
  #isNamed({ request }: SentCommit): boolean {
    const [snapshot] = snapshotsOf(request)
    return snapshot?.manifestList !== undefined && this.#referred.has(snapshot.manifestList)
  }

  /** Remembers which files of ours the table refers to, and which requests it would still take. */
  noteTable(metadata: TableMetadata): void {
    const files = new Set(filesIn(metadata))
    for (const { built } of this.#sent) for (const file of built.files) if (files.has(file)) this.#referred.add(file)
    for (const sent of this.#sent) sent.possible = !isOvertaken(sent.request, metadata)
  }

  /** The files of requests that are not applied. What others of them may need, or a table refers to, is not among them. */
  removable(applied: SentCommit | undefined): string[] {
    const isNeeded = (sent: SentCommit): boolean =>
      sent === applied ||
      sent.state === 'unknown' ||
      sent.state === 'overtaken' ||
      mayArrive(sent) ||
      (applied !== undefined && !this.#isNamed(applied) && isOfSameSnapshot(sent, applied))
    const kept = new Set(this.#sent.filter(isNeeded).flatMap(({ built }) => built.files))
    const files = new Set(this.#sent.flatMap(({ built }) => built.files))
    return [...files].filter((file) => !kept.has(file) && !this.#referred.has(file))
  }

  get files(): string[] {
    return [...new Set(this.#sent.flatMap(({ built }) => built.files))]
  }
}

/** Whether a copy of a request that was answered "not applied" may still be applied. */
function mayArrive({ state, final, possible }: SentCommit): boolean {
  return state === 'answered' && !final && possible
}

function isApplied({ built, base }: SentCommit, metadata: TableMetadata): boolean {
  return built.isApplied?.(metadata) ?? showsUpdates(metadata, built.updates, base.metadata)
}

function snapshotsOf({ updates }: CommitRequest): Snapshot[] {
  return updates.flatMap((update) => (update.action === 'add-snapshot' ? [update.snapshot] : []))
}

function isOfSameSnapshot(a: SentCommit, b: SentCommit): boolean {
  const ids = new Set(snapshotsOf(a.request).map(({ snapshotId }) => snapshotId))
  return snapshotsOf(b.request).some(({ snapshotId }) => ids.has(snapshotId))
}

/** The files that metadata names by itself. */
function filesIn(metadata: TableMetadata): string[] {
  return [
    ...metadata.snapshots.flatMap((snapshot) => [snapshot.manifestList ?? '', ...(snapshot.manifests ?? [])]),
    ...metadata.statistics.map((file) => file.statisticsPath),
    ...metadata.partitionStatistics.map((file) => file.statisticsPath),
  ]
}

/** Whether a request that the table does not show can no longer be applied to it. */
function isOvertaken({ requirements, updates }: CommitRequest, metadata: TableMetadata): boolean {
  // Commits to other branches count too. Only the first snapshot of a branch may have a number that was passed.
  const numberPassed = updates.some(
    (update) =>
      update.action === 'add-snapshot' &&
      update.snapshot.parentSnapshotId !== undefined &&
      metadata.formatVersion > 1 &&
      update.snapshot.sequenceNumber <= metadata.lastSequenceNumber,
  )
  return numberPassed || !meetsRequirements(metadata, requirements)
}

/**
 * Whether a second copy of the request does nothing once the first was applied: it fails by the ref it demands, or it
 * sets what is set already.
 */
export function isRepeatable({ requirements, updates }: CommitRequest): boolean {
  const addsSnapshot = updates.some((update) => update.action === 'add-snapshot')
  return !addsSnapshot || requirements.some((requirement) => requirement.type === 'assert-ref-snapshot-id')
}

/** Whether nothing at all was changed between two loads. */
export function isSameMetadata(a: LoadedTable, b: LoadedTable): boolean {
  if (a.metadataLocation !== undefined && b.metadataLocation !== undefined) {
    return a.metadataLocation === b.metadataLocation
  }
  const text = ({ metadata }: LoadedTable): string => stringifyJson(tableMetadataToJson(metadata))
  return text(a) === text(b)
}
