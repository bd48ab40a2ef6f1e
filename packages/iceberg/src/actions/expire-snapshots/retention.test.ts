import { describe, expect, test } from 'vitest'
import { createTableMetadata } from '../../metadata/create-table-metadata.ts'
import type { SnapshotRef } from '../../metadata/snapshot.ts'
import type { TableMetadata } from '../../metadata/table-metadata.ts'
import { decideRetention, type RetentionSettings } from './retention.ts'

const empty = createTableMetadata({ schema: { fields: [] }, location: 's3://lake/t', nowMs: 1 })

/** Snapshots by id: made at this time, after this parent. */
function tableOf(
  snapshots: Record<number, readonly [atMs: number, parent?: number | undefined, summary?: Record<string, string>]>,
  refs: Record<string, Omit<SnapshotRef, 'snapshotId'> & { at: number }>,
): TableMetadata {
  return {
    ...empty,
    snapshots: Object.entries(snapshots).map(([id, [timestampMs, parent, summary]]) => ({
      snapshotId: BigInt(id),
      ...(parent !== undefined && { parentSnapshotId: BigInt(parent) }),
      sequenceNumber: BigInt(id),
      timestampMs,
      manifestList: `s3://lake/t/${id}.avro`,
      ...(summary !== undefined && { summary }),
    })),
    refs: new Map(Object.entries(refs).map(([name, { at, ...ref }]) => [name, { ...ref, snapshotId: BigInt(at) }])),
  }
}

const settings: RetentionSettings = {
  nowMs: 1000,
  olderThanMs: 500,
  retainLast: 1,
  maxRefAgeMs: Number.POSITIVE_INFINITY,
  snapshotIds: new Set(),
  writerProgressMs: 0,
}

const keptOf = (metadata: TableMetadata, changes: Partial<RetentionSettings> = {}): number[] =>
  decideRetention(metadata, { ...settings, ...changes }).kept.map(({ snapshotId }) => Number(snapshotId))

const chain = { 1: [100], 2: [200, 1], 3: [300, 2], 4: [400, 3] } as const
const main = { type: 'branch' } as const

describe('a branch keeps', () => {
  test('its head, and as many as are to be retained', () => {
    const table = tableOf(chain, { main: { ...main, at: 4 } })
    expect(keptOf(table)).toEqual([4])
    expect(keptOf(table, { retainLast: 3 })).toEqual([2, 3, 4])
    expect(keptOf(table, { olderThanMs: 300 })).toEqual([3, 4])
    expect(keptOf(table, { olderThanMs: 2000 })).toEqual([4])
  })

  test('what its own settings say, whatever the caller says', () => {
    const refs = { main: { ...main, at: 4, minSnapshotsToKeep: 2, maxSnapshotAgeMs: 1n } }
    expect(keptOf(tableOf(chain, refs), { retainLast: 4, olderThanMs: 0 })).toEqual([3, 4])
  })

  test('nothing beyond the first snapshot that is neither young nor among the last', () => {
    // The clock went backwards: 1 is young, but 2 ends the branch before it.
    const table = tableOf({ 1: [900], 2: [200, 1], 3: [300, 2] }, { main: { ...main, at: 3 } })
    expect(keptOf(table)).toEqual([3])
  })
})

test('every branch and tag counts, not the head of main only', () => {
  const refs = { main: { ...main, at: 4 }, b: { ...main, at: 2 }, t: { type: 'tag', at: 1 } } as const
  expect(keptOf(tableOf(chain, refs))).toEqual([1, 2, 4])
  expect(keptOf(tableOf(chain, refs), { retainLast: 2 })).toEqual([1, 2, 3, 4])
})

test('snapshots that no ref reaches are kept while they are young', () => {
  const table = tableOf({ ...chain, 5: [450, 3], 6: [600, 3] }, { main: { ...main, at: 4 } })
  expect(keptOf(table)).toEqual([4, 6])
})

test('refs go when they are too old or their snapshot is gone; main never does', () => {
  const refs = {
    main: { ...main, at: 1, maxRefAgeMs: 1n },
    old: { type: 'tag', at: 2, maxRefAgeMs: 799n },
    young: { type: 'tag', at: 3, maxRefAgeMs: 700n },
    dangling: { type: 'tag', at: 9 },
  } as const
  const { removedRefs, kept } = decideRetention(tableOf(chain, refs), settings)
  expect(removedRefs.map(({ name }) => name)).toEqual(['old', 'dangling'])
  expect(kept.map(({ snapshotId }) => Number(snapshotId))).toEqual([1, 3])
  const limited = decideRetention(tableOf(chain, refs), { ...settings, removableRefs: new Map([['old', 3n]]) })
  expect(limited.removedRefs).toEqual([])
})

test('a named snapshot goes whatever its age, unless a ref holds it', () => {
  const table = tableOf(chain, { main: { ...main, at: 4 } })
  const { expired, held } = decideRetention(table, { ...settings, olderThanMs: 0, snapshotIds: new Set([2n, 4n]) })
  expect(expired).toEqual([{ snapshotId: 2n, reason: 'named' }])
  expect(held.get(4n)).toBe('branch main')
})

describe('the progress of writers', () => {
  const flink = (job: string): Record<string, string> => ({
    'flink.job-id': job,
    'flink.max-committed-checkpoint-id': '1',
  })
  const kafka = { 'kafka.connect.offsets.topic.group': '{}' }
  const table = tableOf(
    { 1: [100, undefined, flink('a')], 2: [200, 1, kafka], 3: [300, 2, flink('a')], 4: [400, 3], 5: [410, 4] },
    { main: { ...main, at: 5 } },
  )

  test('keeps the whole chain down to the newest carrier of each', () => {
    const { kept, held } = decideRetention(table, { ...settings, writerProgressMs: 900 })
    expect(kept.map(({ snapshotId }) => Number(snapshotId))).toEqual([2, 3, 4, 5])
    expect(kept[0]?.reasons).toEqual(['on the way from branch main to the progress of Kafka Connect topic.group'])
    expect(kept[2]?.reasons).toEqual(['on the way from branch main to the progress of Flink job a'])
    expect(held.has(2n)).toBe(true)
  })

  test('is kept for so long only', () => {
    expect(keptOf(table, { writerProgressMs: 750 })).toEqual([3, 4, 5])
    expect(keptOf(table, { writerProgressMs: 100 })).toEqual([5])
    expect(keptOf(table)).toEqual([5])
  })

  test('is found on every branch', () => {
    const branched = tableOf(
      { 1: [100], 2: [200, 1, kafka], 3: [300, 2], 4: [400, 1] },
      { main: { ...main, at: 4 }, b: { ...main, at: 3 } },
    )
    expect(keptOf(branched, { writerProgressMs: 900 })).toEqual([2, 3, 4])
  })
})
