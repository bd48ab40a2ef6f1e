import { describe, expect, test } from 'vitest'
import { createTableMetadata } from '../metadata/create-table-metadata.ts'
import type { TableMetadata } from '../metadata/table-metadata.ts'
import { showsUpdates } from './applied.ts'

const empty = createTableMetadata({ schema: { fields: [] }, location: 's3://lake/t', nowMs: 1 })

/** A table with these snapshots, each with its parent, and the branch b at one of them. */
function tableAt(head: bigint, parents: readonly (readonly [id: bigint, parent?: bigint])[]): TableMetadata {
  const snapshots = parents.map(([snapshotId, parent]) => ({
    snapshotId,
    ...(parent !== undefined && { parentSnapshotId: parent }),
    sequenceNumber: snapshotId,
    timestampMs: Number(snapshotId),
    manifestList: `s3://lake/t/${snapshotId}.avro`,
  }))
  return { ...empty, snapshots, refs: new Map([['b', { type: 'branch', snapshotId: head }]]) }
}

const moveTo = (snapshotId: bigint, type: 'branch' | 'tag' = 'branch') =>
  [{ action: 'set-snapshot-ref', refName: 'b', ref: { type, snapshotId } }] as const

describe('a move of a branch that others have committed on', () => {
  test('is shown after a rollback, which would undo their commit if it were done again', () => {
    const base = tableAt(5n, [[3n], [5n, 3n]])
    const now = tableAt(6n, [[3n], [5n, 3n], [6n, 3n]])
    expect(showsUpdates(now, moveTo(3n), base)).toBe(true)
    expect(showsUpdates(now, moveTo(3n, 'tag'), base)).toBe(false)
    expect(showsUpdates(now, moveTo(3n))).toBe(false)
  })

  test('is not shown when they committed on the head from before the rollback', () => {
    const base = tableAt(5n, [[3n], [5n, 3n]])
    const now = tableAt(6n, [[3n], [5n, 3n], [6n, 5n]])
    expect(showsUpdates(now, moveTo(3n), base)).toBe(false)
  })

  test('is shown after a move forward, and not while the branch is still behind', () => {
    const base = tableAt(3n, [[3n], [5n, 3n]])
    expect(showsUpdates(tableAt(6n, [[3n], [5n, 3n], [6n, 5n]]), moveTo(5n), base)).toBe(true)
    expect(showsUpdates(tableAt(6n, [[3n], [5n, 3n], [6n, 3n]]), moveTo(5n), base)).toBe(false)
  })
})
