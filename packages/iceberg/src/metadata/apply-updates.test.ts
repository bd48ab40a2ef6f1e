import { expect, test } from 'vitest'
import { parseJson, stringifyJson } from '../json/json.ts'
import { applyUpdates, droppedMetadataFiles } from './apply-updates.ts'
import { createTableMetadata } from './create-table-metadata.ts'
import { parseTableMetadata, serializeTableMetadata } from './metadata-file.ts'
import { checkRequirements } from './requirements.ts'
import type { Snapshot } from './snapshot.ts'
import type { FormatVersion, TableMetadata } from './table-metadata.ts'
import type { Type } from '../schema/type.ts'
import type { MetadataRequirement, MetadataUpdate } from './update.ts'
import { requirementFromJson, requirementToJson, updateFromJson, updateToJson } from './update-json.ts'

const long: Type = { type: 'long' }

function newTable(formatVersion: FormatVersion = 2, properties: Record<string, string> = {}): TableMetadata {
  return createTableMetadata({
    location: 's3://bucket/t',
    schema: {
      fields: [
        { id: 10, name: 'id', required: true, type: long },
        { id: 20, name: 'at', required: false, type: { type: 'timestamp' } },
      ],
    },
    partitionSpec: { fields: [{ fieldId: 0, sourceId: 20, name: 'at_day', transform: { name: 'day' } }] },
    properties,
    formatVersion,
    nowMs: 1000,
  })
}

function snapshot(table: TableMetadata, snapshotId: bigint, more: Partial<Snapshot> = {}): Snapshot {
  return {
    snapshotId,
    ...(table.currentSnapshotId === undefined ? {} : { parentSnapshotId: table.currentSnapshotId }),
    sequenceNumber: table.formatVersion === 1 ? 0n : table.lastSequenceNumber + 1n,
    timestampMs: table.lastUpdatedMs + 10,
    manifestList: `s3://bucket/snap-${snapshotId}.avro`,
    summary: { operation: 'append' },
    schemaId: table.currentSchemaId,
    ...(table.formatVersion === 3 ? { firstRowId: table.nextRowId, addedRows: 5n } : {}),
    ...more,
  }
}

function commit(
  table: TableMetadata,
  snapshotId: bigint,
  more: Partial<Snapshot> = {},
  refName = 'main',
): TableMetadata {
  const updates: MetadataUpdate[] = [
    { action: 'add-snapshot', snapshot: snapshot(table, snapshotId, more) },
    { action: 'set-snapshot-ref', refName, ref: { ...table.refs.get(refName), snapshotId, type: 'branch' } },
  ]
  return applyUpdates(table, updates, { nowMs: table.lastUpdatedMs + 10, previousLocation: `v${snapshotId}.json` })
}

test('a new table has fresh ids, in its spec too', () => {
  const table = newTable()
  expect(table).toMatchObject({
    lastColumnId: 2,
    lastPartitionId: 1000,
    schemas: [{ schemaId: 0, fields: [{ id: 1 }, { id: 2 }] }],
    partitionSpecs: [{ specId: 0, fields: [{ fieldId: 1000, sourceId: 2 }] }],
  })
  expect(parseTableMetadata(serializeTableMetadata(table, 'v1.metadata.json'))).toEqual(table)
})

test.each([1, 2, 3] as const)('a commit to a v%d table moves main, the logs and the numbers', (version) => {
  const one = commit(newTable(version), 1n)
  const two = commit(one, 2n)
  expect(two.currentSnapshotId).toBe(2n)
  expect(two.snapshotLog.map((entry) => entry.snapshotId)).toEqual([1n, 2n])
  expect(two.metadataLog).toEqual([
    { timestampMs: 1000, metadataFile: 'v1.json' },
    { timestampMs: one.lastUpdatedMs, metadataFile: 'v2.json' },
  ])
  expect(two.lastSequenceNumber).toBe(version === 1 ? 0n : 2n)
  expect(two.nextRowId).toBe(version === 3 ? 10n : 0n)
  expect(two.lastUpdatedMs).toBe(1020)
})

test('a snapshot made for an older state is told apart, so that it can be made anew', () => {
  const table = commit(newTable(3), 1n)
  const stale =
    (more: Partial<Snapshot>): (() => TableMetadata) =>
    () =>
      commit(table, 2n, more)
  expect(stale({ sequenceNumber: 1n })).toThrow(expect.objectContaining({ code: 'requirement_failed' }))
  expect(stale({ firstRowId: 4n })).toThrow(expect.objectContaining({ code: 'requirement_failed' }))
  expect(() => commit(table, 1n)).toThrow('snapshot 1 is in the table already')
})

test('the metadata log is cut, and what fell off is known', () => {
  let table = newTable(2, { 'write.metadata.previous-versions-max': '2' })
  let before = table
  for (const id of [1n, 2n, 3n]) {
    before = table
    table = commit(table, id)
  }
  expect(table.metadataLog.map((entry) => entry.metadataFile)).toEqual(['v2.json', 'v3.json'])
  expect(droppedMetadataFiles(before, table)).toEqual(['v1.json'])
})

test('removing a snapshot removes its refs and statistics, and the log up to it', () => {
  let table = newTable()
  for (const id of [1n, 2n, 3n]) table = commit(table, id)
  const statistics = (snapshotId: bigint): MetadataUpdate => ({
    action: 'set-partition-statistics',
    partitionStatistics: { snapshotId, statisticsPath: 'p', fileSizeInBytes: 1n },
  })
  table = applyUpdates(
    table,
    [
      statistics(2n),
      statistics(3n),
      { action: 'set-snapshot-ref', refName: 'old', ref: { snapshotId: 2n, type: 'tag' } },
    ],
    { nowMs: 0 },
  )
  const expired = applyUpdates(table, [{ action: 'remove-snapshots', snapshotIds: [2n] }], { nowMs: 0 })
  expect(expired.snapshots.map((s) => s.snapshotId)).toEqual([1n, 3n])
  expect(expired.snapshotLog.map((entry) => entry.snapshotId)).toEqual([3n])
  expect([...expired.refs.keys()]).toEqual(['main'])
  expect(expired.partitionStatistics.map((file) => file.snapshotId)).toEqual([3n])
  expect(table.snapshots).toHaveLength(3)
})

test('a rollback is logged at the time it is made', () => {
  const table = commit(commit(newTable(), 1n), 2n)
  const back = applyUpdates(
    table,
    [{ action: 'set-snapshot-ref', refName: 'main', ref: { snapshotId: 1n, type: 'branch' } }],
    { nowMs: 5000 },
  )
  expect(back.currentSnapshotId).toBe(1n)
  expect(back.snapshotLog.at(-1)).toEqual({ timestampMs: 5000, snapshotId: 1n })
})

test('a snapshot that was main only between two updates is not in the log', () => {
  const table = newTable()
  const set = (snapshotId: bigint): MetadataUpdate => ({
    action: 'set-snapshot-ref',
    refName: 'main',
    ref: { snapshotId, type: 'branch' },
  })
  const two = applyUpdates(
    table,
    [
      { action: 'add-snapshot', snapshot: snapshot(table, 1n) },
      set(1n),
      { action: 'add-snapshot', snapshot: snapshot(table, 2n, { parentSnapshotId: 1n, sequenceNumber: 2n }) },
      set(2n),
    ],
    { nowMs: 2000 },
  )
  expect(two.snapshotLog.map((entry) => entry.snapshotId)).toEqual([2n])
})

test('v1 becomes v2 becomes v3, and never goes back', () => {
  let table = commit(newTable(1), 1n)
  const to = (formatVersion: FormatVersion): void => {
    table = applyUpdates(table, [{ action: 'upgrade-format-version', formatVersion }], { nowMs: 0 })
  }
  to(2)
  table = commit(table, 2n)
  expect(table.lastSequenceNumber).toBe(1n)
  to(3)
  table = commit(table, 3n)
  expect(table).toMatchObject({ formatVersion: 3, nextRowId: 5n })
  expect(() => to(2)).toThrow('cannot be brought down')
})

test('a schema that is there already is used again', () => {
  const table = newTable()
  const wider = { schemaId: 9, identifierFieldIds: [], fields: [...(table.schemas[0]?.fields ?? [])] }
  wider.fields.push({ id: 3, name: 'c', required: false, type: long })
  const set: MetadataUpdate = { action: 'set-current-schema', schemaId: -1 }
  const two = applyUpdates(table, [{ action: 'add-schema', schema: wider }, set], { nowMs: 0 })
  expect(two).toMatchObject({ currentSchemaId: 1, lastColumnId: 3 })
  const first = { schemaId: 5, identifierFieldIds: [], fields: table.schemas[0]?.fields ?? [] }
  const back = applyUpdates(two, [{ action: 'add-schema', schema: first }, set], { nowMs: 0 })
  expect(back).toMatchObject({ currentSchemaId: 0, lastColumnId: 3 })
  expect(back.schemas).toHaveLength(2)
})

test.each<[string, MetadataUpdate[], string]>([
  [
    'a ref to nothing',
    [{ action: 'set-snapshot-ref', refName: 'b', ref: { snapshotId: 9n, type: 'branch' } }],
    'snapshot 9',
  ],
  [
    'a tag called main',
    [{ action: 'set-snapshot-ref', refName: 'main', ref: { snapshotId: 1n, type: 'tag' } }],
    'a branch',
  ],
  [
    'a tag that keeps snapshots',
    [{ action: 'set-snapshot-ref', refName: 't', ref: { snapshotId: 1n, type: 'tag', minSnapshotsToKeep: 1 } }],
    'only branches have',
  ],
  ['the current schema removed', [{ action: 'remove-schemas', schemaIds: [0] }], 'current schema cannot be removed'],
  ['the default spec removed', [{ action: 'remove-partition-specs', specIds: [0] }], 'cannot be removed'],
  ['an unknown schema', [{ action: 'set-current-schema', schemaId: 7 }], 'no such schema'],
  ['no last added', [{ action: 'set-current-schema', schemaId: -1 }], 'none was added'],
  ['another uuid', [{ action: 'assign-uuid', uuid: 'x' }], 'cannot be changed'],
  [
    'the source of the partitions dropped',
    [
      {
        action: 'add-schema',
        schema: { schemaId: 1, identifierFieldIds: [], fields: [{ id: 1, name: 'id', required: true, type: long }] },
      },
      { action: 'set-current-schema', schemaId: -1 },
    ],
    'needs column 2',
  ],
  [
    'a type of v3',
    [
      {
        action: 'add-schema',
        schema: {
          schemaId: 1,
          identifierFieldIds: [],
          fields: [{ id: 3, name: 'v', required: false, type: { type: 'variant' } }],
        },
      },
    ],
    'needs format version 3',
  ],
])('%s is refused', (_, updates, message) => {
  const table = commit(newTable(), 1n)
  expect(() => applyUpdates(table, updates, { nowMs: 0 })).toThrow(
    expect.objectContaining({ code: 'update_invalid', message: expect.stringContaining(message) }),
  )
})

test('requirements hold or name what does not', () => {
  const table = { ...commit(newTable(), 1n), tableUuid: 'ABC' }
  const holding: MetadataRequirement[] = [
    { type: 'assert-table-uuid', uuid: 'abc' },
    { type: 'assert-ref-snapshot-id', ref: 'main', snapshotId: 1n },
    { type: 'assert-ref-snapshot-id', ref: 'none', snapshotId: null },
    { type: 'assert-last-assigned-field-id', lastAssignedFieldId: 2 },
    { type: 'assert-current-schema-id', currentSchemaId: 0 },
    { type: 'assert-last-assigned-partition-id', lastAssignedPartitionId: 1000 },
    { type: 'assert-default-spec-id', defaultSpecId: 0 },
    { type: 'assert-default-sort-order-id', defaultSortOrderId: 0 },
  ]
  checkRequirements(table, holding)
  checkRequirements(undefined, [{ type: 'assert-create' }])
  for (const requirement of holding) {
    expect(requirementFromJson(parseJson(stringifyJson(requirementToJson(requirement))))).toEqual(requirement)
  }
  const failing: [MetadataRequirement, string][] = [
    [{ type: 'assert-create' }, 'it exists already'],
    [{ type: 'assert-table-uuid', uuid: 'z' }, 'its uuid is abc, not z'],
    [{ type: 'assert-ref-snapshot-id', ref: 'main', snapshotId: 2n }, 'the snapshot of "main" is 1, not 2'],
    [{ type: 'assert-ref-snapshot-id', ref: 'main', snapshotId: null }, 'the snapshot of "main" is 1, not unset'],
    [{ type: 'assert-current-schema-id', currentSchemaId: 4 }, 'its current schema is 0, not 4'],
  ]
  for (const [requirement, message] of failing) {
    expect(() => checkRequirements(table, [requirement])).toThrow(
      expect.objectContaining({ code: 'requirement_failed', message: expect.stringContaining(message) }),
    )
  }
})

test('every update comes back from the JSON of the REST protocol', () => {
  const table = newTable(3)
  const updates: MetadataUpdate[] = [
    { action: 'assign-uuid', uuid: 'u' },
    { action: 'upgrade-format-version', formatVersion: 3 },
    { action: 'add-schema', schema: { schemaId: 1, identifierFieldIds: [1], fields: table.schemas[0]?.fields ?? [] } },
    { action: 'set-current-schema', schemaId: -1 },
    { action: 'add-spec', spec: { specId: 0, fields: table.partitionSpecs[0]?.fields ?? [] } },
    { action: 'set-default-spec', specId: -1 },
    {
      action: 'add-sort-order',
      sortOrder: {
        orderId: 1,
        fields: [{ sourceId: 1, transform: { name: 'identity' }, direction: 'desc', nullOrder: 'nulls-last' }],
      },
    },
    { action: 'set-default-sort-order', sortOrderId: -1 },
    { action: 'add-snapshot', snapshot: snapshot(table, 2n ** 62n + 1n) },
    {
      action: 'set-snapshot-ref',
      refName: 'b',
      ref: {
        snapshotId: 2n ** 62n + 1n,
        type: 'branch',
        minSnapshotsToKeep: 2,
        maxSnapshotAgeMs: 2n ** 63n - 1n,
        maxRefAgeMs: 5n,
      },
    },
    { action: 'remove-snapshots', snapshotIds: [2n ** 62n + 1n, 4n] },
    { action: 'remove-snapshot-ref', refName: 'b' },
    { action: 'set-location', location: 'l' },
    { action: 'set-properties', updates: { a: 'b' } },
    { action: 'remove-properties', removals: ['a'] },
    {
      action: 'set-statistics',
      statistics: {
        snapshotId: 1n,
        statisticsPath: 'p',
        fileSizeInBytes: 1n,
        fileFooterSizeInBytes: 2n,
        blobMetadata: [],
      },
    },
    { action: 'remove-statistics', snapshotId: 1n },
    {
      action: 'set-partition-statistics',
      partitionStatistics: { snapshotId: 1n, statisticsPath: 'p', fileSizeInBytes: 1n },
    },
    { action: 'remove-partition-statistics', snapshotId: 1n },
    { action: 'remove-partition-specs', specIds: [1] },
    { action: 'remove-schemas', schemaIds: [1] },
  ]
  for (const update of updates) expect(updateFromJson(parseJson(stringifyJson(updateToJson(update))))).toEqual(update)
  expect(() => updateFromJson({ action: 'add-encryption-key' })).toThrow('"add-encryption-key" is not supported')
})
