import { expect, test } from 'vitest'
import { ancestorsOf, isAncestor } from './ancestry.ts'
import { applyUpdates } from './apply-updates.ts'
import { createTableMetadata } from './create-table-metadata.ts'
import type { Snapshot } from './snapshot.ts'
import type { TableMetadata } from './table-metadata.ts'
import type { MetadataUpdate } from './update.ts'

/** A table of so many snapshots, one after another, that counts how often one is looked at. */
function table(count: number): { metadata: TableMetadata; reads: () => number } {
  let reads = 0
  const snapshots = Array.from({ length: count }, (_, n): Snapshot => ({
    get snapshotId() {
      reads += 1
      return BigInt(n + 1)
    },
    ...(n > 0 && { parentSnapshotId: BigInt(n) }),
    sequenceNumber: BigInt(n + 1),
    timestampMs: n,
    manifestList: `s3://b/${n}.avro`,
  }))
  const empty = createTableMetadata({ location: 's3://b/t', schema: { fields: [] }, formatVersion: 2, nowMs: 1 })
  const newest = BigInt(count)
  const metadata = {
    ...empty,
    snapshots,
    currentSnapshotId: newest,
    lastSequenceNumber: newest,
    refs: new Map([['main', { snapshotId: newest, type: 'branch' as const }]]),
    snapshotLog: snapshots.map(({ snapshotId, timestampMs }) => ({ snapshotId, timestampMs })),
  }
  return { metadata, reads: () => reads }
}

const ids = (snapshots: Iterable<Snapshot>): bigint[] => Array.from(snapshots, ({ snapshotId }) => snapshotId)

test('the ancestors of a snapshot are found in one walk over the snapshots', () => {
  const { metadata, reads } = table(3000)
  expect(ids(ancestorsOf(metadata, 3000n))).toEqual(Array.from({ length: 3000 }, (_, n) => BigInt(3000 - n)))
  expect(reads()).toBeLessThan(4 * 3000)
  expect(isAncestor(metadata, 2999n, 1n)).toBe(true)
  expect(isAncestor(metadata, 2n, 3n)).toBe(false)
})

test('ancestors are found in any order of the snapshots, in two walks', () => {
  const { metadata, reads } = table(3000)
  const shuffled = metadata.snapshots.toReversed()
  const before = reads()
  expect(ids(ancestorsOf({ snapshots: shuffled }, 3000n))).toHaveLength(3000)
  expect(reads() - before).toBeLessThan(4 * 3000)
})

test('ancestors end at a snapshot that was expired, and in a table whose snapshots form a ring', () => {
  const { metadata } = table(3)
  const [first, second, third] = metadata.snapshots as [Snapshot, Snapshot, Snapshot]
  expect(ids(ancestorsOf({ snapshots: [second, third] }, 3n))).toEqual([3n, 2n])
  expect(ids(ancestorsOf({ snapshots: [{ ...first, parentSnapshotId: 3n }, second, third] }, 3n))).toEqual([3n, 2n, 1n])
  expect(ids(ancestorsOf({ snapshots: [] }, undefined))).toEqual([])
})

test.each(['in their order', 'in another order'])(
  'snapshots that are removed one by one, %s, take a few walks',
  (order) => {
    const { metadata, reads } = table(3000)
    const removals = Array.from({ length: 2998 }, (_, n): MetadataUpdate => ({
      action: 'remove-snapshots',
      snapshotIds: [BigInt(n + 1)],
    }))
    if (order !== 'in their order') removals.reverse()
    const before = reads()
    const next = applyUpdates(metadata, removals, { nowMs: 1 })
    expect(reads() - before).toBeLessThan(4 * 3000)
    expect(next.snapshots.map(({ snapshotId }) => snapshotId)).toEqual([2999n, 3000n])
    expect(next.snapshotLog.map(({ snapshotId }) => snapshotId)).toEqual([2999n, 3000n])
  },
)

test('a removal takes the refs and statistics of its snapshots along, and no others', () => {
  const { metadata } = table(4)
  const statistics = (snapshotId: bigint) => ({
    snapshotId,
    statisticsPath: `s3://b/${snapshotId}.puffin`,
    fileSizeInBytes: 1n,
    fileFooterSizeInBytes: 1n,
    blobMetadata: [],
  })
  const refs = new Map([...metadata.refs, ['old', { snapshotId: 1n, type: 'tag' as const }]] as const)
  const before = { ...metadata, refs, statistics: [1n, 2n, 3n].map(statistics) } as unknown as TableMetadata
  const next = applyUpdates(before, [{ action: 'remove-snapshots', snapshotIds: [3n, 1n, 99n] }], { nowMs: 1 })
  expect([...next.refs.keys()]).toEqual(['main'])
  expect(next.statistics.map(({ snapshotId }) => snapshotId)).toEqual([2n])
})

test('a removal between other updates keeps its place', () => {
  const { metadata } = table(3)
  const updates: MetadataUpdate[] = [
    { action: 'remove-snapshots', snapshotIds: [1n] },
    { action: 'set-snapshot-ref', refName: 'kept', ref: { snapshotId: 2n, type: 'tag' } },
    { action: 'remove-snapshots', snapshotIds: [2n] },
  ]
  const next = applyUpdates(metadata, updates, { nowMs: 1 })
  expect([...next.refs.keys()]).toEqual(['main'])
  expect(() => applyUpdates(metadata, [...updates].reverse(), { nowMs: 1 })).toThrow('not in the table')
})
