import { IcebergError } from '../errors.ts'
import type { Steps } from '../json/steps.ts'
import { type Draft, updateInvalid } from './draft.ts'
import type { Snapshot, SnapshotRef } from './snapshot.ts'
import { mainBranch, type SnapshotLogEntry } from './table-metadata.ts'

export function addSnapshot(draft: Draft, snapshot: Snapshot): void {
  const { next } = draft
  if (next.snapshots.some((s) => s.snapshotId === snapshot.snapshotId)) {
    throw updateInvalid(draft, `snapshot ${snapshot.snapshotId} is in the table already`)
  }
  if (next.formatVersion > 1) {
    if (snapshot.sequenceNumber <= next.lastSequenceNumber && snapshot.parentSnapshotId !== undefined) {
      throw stale(draft, `the sequence number ${snapshot.sequenceNumber} is not above ${next.lastSequenceNumber}`)
    }
    if (snapshot.manifestList === undefined) throw updateInvalid(draft, 'a snapshot must have a manifest list')
    if (snapshot.sequenceNumber > next.lastSequenceNumber) next.lastSequenceNumber = snapshot.sequenceNumber
  }
  if (next.formatVersion >= 3) addRows(draft, snapshot)
  next.snapshots = [...next.snapshots, snapshot]
  next.lastUpdatedMs = Math.max(next.lastUpdatedMs, snapshot.timestampMs)
  draft.added.add(snapshot.snapshotId)
}

function addRows(draft: Draft, snapshot: Snapshot): void {
  const { firstRowId, addedRows } = snapshot
  if (firstRowId === undefined || addedRows === undefined || addedRows < 0n) {
    throw updateInvalid(
      draft,
      `snapshot ${snapshot.snapshotId} lacks first-row-id or added-rows, which version 3 needs`,
    )
  }
  if (firstRowId < draft.next.nextRowId) {
    throw stale(draft, `the first row id ${firstRowId} is below the next one, ${draft.next.nextRowId}`)
  }
  draft.next.nextRowId = firstRowId + addedRows
}

/** The snapshot was made for an older state of the table: built anew, it may be added. */
function stale(draft: Draft, message: string): IcebergError {
  return new IcebergError('requirement_failed', `The table at ${draft.next.location} has moved on: ${message}`)
}

export function setSnapshotRef(draft: Draft, name: string, ref: SnapshotRef): void {
  const { next } = draft
  const snapshot = next.snapshots.find((s) => s.snapshotId === ref.snapshotId)
  if (snapshot === undefined) {
    throw updateInvalid(draft, `"${name}" cannot be set to snapshot ${ref.snapshotId}: it is not in the table`)
  }
  checkRef(draft, name, ref)
  if (name === mainBranch && next.refs.get(mainBranch)?.snapshotId !== ref.snapshotId) {
    const previous = next.currentSnapshotId
    if (previous !== undefined && draft.added.has(previous)) draft.passed.add(previous)
    next.currentSnapshotId = ref.snapshotId
    // A rollback is logged at the time it is made, a new snapshot at its own.
    const timestampMs = draft.added.has(ref.snapshotId) ? snapshot.timestampMs : next.lastUpdatedMs
    next.snapshotLog = [...next.snapshotLog, { timestampMs, snapshotId: ref.snapshotId }]
  }
  next.refs = new Map(next.refs).set(name, ref)
}

function checkRef(draft: Draft, name: string, ref: SnapshotRef): void {
  if (ref.type === 'tag') {
    if (name === mainBranch) throw updateInvalid(draft, 'main must be a branch, not a tag')
    if (ref.minSnapshotsToKeep !== undefined || ref.maxSnapshotAgeMs !== undefined) {
      throw updateInvalid(draft, `the tag "${name}" has settings that only branches have`)
    }
  }
  for (const setting of [ref.minSnapshotsToKeep, ref.maxSnapshotAgeMs, ref.maxRefAgeMs]) {
    if (setting !== undefined && setting <= 0)
      throw updateInvalid(draft, `a retention setting of "${name}" is not above 0`)
  }
}

export function removeSnapshotRef(draft: Draft, name: string): void {
  if (name === mainBranch) delete draft.next.currentSnapshotId
  const refs = new Map(draft.next.refs)
  refs.delete(name)
  draft.next.refs = refs
}

/** Removes snapshots with their statistics, and every ref to them: callers assert the refs they know. */
export function* removeSnapshots(draft: Draft, snapshotIds: readonly bigint[]): Steps<void> {
  const { next } = draft
  const kept = inOrder(next.snapshots, snapshotIds) ?? (yield* withoutMany(next.snapshots, snapshotIds))
  yield
  if (kept.length === next.snapshots.length) return
  const held = [...next.statistics, ...next.partitionStatistics, ...next.refs.values()]
  const gone = new Set(held.map(({ snapshotId }) => snapshotId))
  // Only removed snapshots count: others that are not in the table were not in it before.
  const removed = gone.size === 0 ? gone : new Set(snapshotIds.filter((id) => gone.has(id)))
  next.snapshots = kept
  next.statistics = withoutAny(next.statistics, removed)
  next.partitionStatistics = withoutAny(next.partitionStatistics, removed)
  draft.removedSnapshots = true
  for (const [name, ref] of next.refs) if (removed.has(ref.snapshotId)) removeSnapshotRef(draft, name)
}

/** What is left when the ids come in the order of the snapshots, as they mostly do; else undefined. A large set is slow. */
function inOrder(snapshots: readonly Snapshot[], ids: readonly bigint[]): Snapshot[] | undefined {
  let at = 0
  const kept = snapshots.filter(({ snapshotId }) => {
    if (snapshotId !== ids[at]) return true
    at += 1
    return false
  })
  return at === ids.length ? kept : undefined
}

function* withoutMany(snapshots: readonly Snapshot[], ids: readonly bigint[]): Steps<Snapshot[]> {
  const removed = yield* setOf(ids)
  const kept: Snapshot[] = []
  for (const snapshot of snapshots) {
    if (!removed.has(snapshot.snapshotId)) kept.push(snapshot)
    yield
  }
  return kept
}

function* setOf(ids: readonly bigint[]): Steps<Set<bigint>> {
  const set = new Set<bigint>()
  for (const id of ids) {
    set.add(id)
    yield
  }
  return set
}

function withoutAny<T extends { readonly snapshotId: bigint }>(items: readonly T[], ids: ReadonlySet<bigint>): T[] {
  return items.filter((item) => !ids.has(item.snapshotId))
}

/**
 * The log of main after all updates. It must be a history without holes: an entry whose snapshot was removed takes
 * everything before it along.
 */
export function* trimSnapshotLog(draft: Draft): Steps<void> {
  const { next } = draft
  if (!draft.removedSnapshots && draft.passed.size === 0) return
  const ids = yield* setOf(next.snapshots.map((s) => s.snapshotId))
  let log: SnapshotLogEntry[] = []
  for (const entry of next.snapshotLog) {
    if (!ids.has(entry.snapshotId)) {
      if (draft.removedSnapshots) log = []
    } else if (!draft.passed.has(entry.snapshotId) || entry.snapshotId === next.currentSnapshotId) {
      log.push(entry)
    }
    yield
  }
  next.snapshotLog = log
}
