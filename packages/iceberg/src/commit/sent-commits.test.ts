import { expect, test } from 'vitest'
import type { LoadedTable } from '../catalogs/catalog.ts'
import { createTableMetadata } from '../metadata/create-table-metadata.ts'
import { snapshotCommit } from '../metadata/refs.ts'
import type { Snapshot } from '../metadata/snapshot.ts'
import type { TableMetadata } from '../metadata/table-metadata.ts'
import { memoryBucket } from '../../test/commit/faults.ts'
import { SentCommits } from './sent-commits.ts'

// Two tries of one change make the same snapshot with manifest lists of their own, and share a manifest.

const empty = createTableMetadata({ schema: { fields: [] }, location: 's3://lake/t', nowMs: 1 })
const loaded = (metadata: TableMetadata): LoadedTable => ({
  identifier: { namespace: ['db'], name: 't' },
  metadata,
  metadataLocation: undefined,
  storage: memoryBucket(),
  config: {},
})
const snapshotOf = (list: string): Snapshot => ({
  snapshotId: 7n,
  sequenceNumber: 1n,
  timestampMs: 2,
  manifestList: list,
})

function twoTries() {
  const sent = new SentCommits()
  const add = (list: string, manifest: string) => {
    const commit = snapshotCommit(empty, 'main', snapshotOf(list))
    const one = sent.add(loaded(empty), { ...commit, files: [list, manifest, 'shared.avro'] }, commit)
    one.state = 'answered'
    one.final = true
    return one
  }
  return { sent, first: add('list-1.avro', 'own-1.avro'), second: add('list-2.avro', 'own-2.avro') }
}

const having = (list: string): LoadedTable => loaded({ ...empty, snapshots: [snapshotOf(list)] })

test('of tries that make the same snapshot, the one whose manifest list the table has is applied', () => {
  const { sent, first } = twoTries()
  expect(sent.appliedIn(having('list-1.avro'))).toBe(first)
  expect(sent.removable(first)).toEqual(['list-2.avro', 'own-2.avro'])
  const other = twoTries()
  expect(other.sent.appliedIn(having('list-2.avro'))).toBe(other.second)
  expect(other.sent.removable(other.second)).toEqual(['list-1.avro', 'own-1.avro'])
})

test('when the snapshot has been expired since, the files of every try that made it stay', () => {
  const { sent } = twoTries()
  const applied = sent.appliedIn(loaded({ ...empty, snapshotLog: [{ snapshotId: 7n, timestampMs: 2 }] }))
  expect(applied).toBeDefined()
  expect(sent.removable(applied)).toEqual([])
})

test('when none of the tries is in the table, the files of all of them go', () => {
  const { sent } = twoTries()
  expect(sent.appliedIn(loaded(empty))).toBeUndefined()
  expect(sent.removable(undefined).toSorted()).toEqual([
    'list-1.avro',
    'list-2.avro',
    'own-1.avro',
    'own-2.avro',
    'shared.avro',
  ])
})
