import type { Snapshot } from './snapshot.ts'
import type { TableMetadata } from './table-metadata.ts'

/**
 * A snapshot and those before it, newest first, as far as they are in the table: the walk ends where one was expired.
 * Tables list their snapshots in the order they were made, so each is looked for from its child backwards. Only where a
 * table has another order is an index made.
 */
export function* ancestorsOf(
  { snapshots }: Pick<TableMetadata, 'snapshots'>,
  from: bigint | undefined,
): Generator<Snapshot> {
  let index: Map<bigint, number> | undefined
  let at = snapshots.length
  let left = snapshots.length
  for (let id = from; id !== undefined && left > 0; left -= 1) {
    const found = index === undefined ? indexBefore(snapshots, at, id) : index.get(id)
    if (found === undefined && index === undefined) {
      index = new Map(snapshots.map((snapshot, position) => [snapshot.snapshotId, position]))
      left += 1
      continue
    }
    const snapshot = found === undefined ? undefined : snapshots[found]
    if (snapshot === undefined) return
    yield snapshot
    at = found ?? 0
    id = snapshot.parentSnapshotId
  }
}

function indexBefore(snapshots: readonly Snapshot[], end: number, id: bigint): number | undefined {
  for (let at = end - 1; at >= 0; at -= 1) if (snapshots[at]?.snapshotId === id) return at
  return undefined
}

/** Whether a snapshot is this one or came before it. */
export function isAncestor(
  metadata: Pick<TableMetadata, 'snapshots'>,
  from: bigint | undefined,
  ancestor: bigint,
): boolean {
  for (const { snapshotId } of ancestorsOf(metadata, from)) if (snapshotId === ancestor) return true
  return false
}
