import { expect, test } from 'vitest'
import { createTableMetadata } from '../metadata/create-table-metadata.ts'
import { applyUpdates } from '../metadata/apply-updates.ts'
import type { MetadataUpdate } from '../metadata/update.ts'
import { LocalStorage } from '../storage/local-storage.ts'
import type { LoadedTable } from './catalog.ts'
import { isResult, nextMetadata } from './next-metadata.ts'

const snapshot = (snapshotId: bigint): MetadataUpdate => ({
  action: 'add-snapshot',
  snapshot: { snapshotId, sequenceNumber: snapshotId, timestampMs: 1, manifestList: `/t/${snapshotId}.avro` },
})
const ref = (refName: string, snapshotId: bigint, type: 'branch' | 'tag'): MetadataUpdate => ({
  action: 'set-snapshot-ref',
  refName,
  ref: { snapshotId, type },
})
const empty = createTableMetadata({
  schema: { fields: [{ id: 1, name: 'id', required: true, type: { type: 'long' } }] },
  location: '/t',
  nowMs: 1,
})
const metadata = applyUpdates(empty, [snapshot(1n), snapshot(2n), ref('main', 2n, 'branch'), ref('keep', 1n, 'tag')], {
  nowMs: 1,
})
const table: LoadedTable = {
  identifier: { namespace: ['db'], name: 't' },
  metadata,
  metadataLocation: '/t/1.json',
  storage: new LocalStorage(),
  config: {},
}
const next = (...updates: MetadataUpdate[]) => nextMetadata(table, { requirements: [], updates })
const remove: MetadataUpdate = { action: 'remove-snapshots', snapshotIds: [1n] }

test('a snapshot that a tag holds is not removed', async () => {
  expect(await next(remove)).toMatchObject({ outcome: 'not_applied', why: 'rejected', error: { code: 'ref_invalid' } })
})

test('a snapshot is removed together with its tag, in any order', async () => {
  const drop: MetadataUpdate = { action: 'remove-snapshot-ref', refName: 'keep' }
  for (const updates of [
    [remove, drop],
    [drop, remove],
    [ref('keep', 2n, 'tag'), remove],
  ]) {
    const made = await next(...updates)
    expect(isResult(made) ? made : made.snapshots.map((s) => s.snapshotId)).toEqual([2n])
  }
})

test('a ref that the same request sets to a removed snapshot is refused', async () => {
  expect(await next({ action: 'remove-snapshot-ref', refName: 'keep' }, ref('other', 1n, 'tag'), remove)).toMatchObject(
    {
      outcome: 'not_applied',
      error: { code: 'ref_invalid' },
    },
  )
})
