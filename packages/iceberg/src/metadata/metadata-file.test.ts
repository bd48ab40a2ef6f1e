import { gunzipSync, gzipSync } from 'node:zlib'
import { expect, test } from 'vitest'
import { type JsonObject, parseJson, stringifyJson } from '../json/json.ts'
import {
  encodeTableMetadata,
  metadataFileExtension,
  parseTableMetadata,
  readTableMetadata,
  serializeTableMetadata,
} from './metadata-file.ts'
import { currentSnapshot, type TableMetadata } from './table-metadata.ts'
import { tableMetadataToJson } from './table-metadata-json.ts'
import { assertWritable } from './validate.ts'

const fields = [
  { id: 1, name: 'id', required: true, type: 'long', 'x-field': 1.1 },
  {
    id: 2,
    name: 'tags',
    required: false,
    type: { type: 'list', 'element-id': 3, element: 'string', 'element-required': true },
  },
  { id: 4, name: 'größe.m', required: false, type: 'decimal(9, 2)', doc: 'in metres' },
]

/** A v2 or v3 table with everything in it, and a key of its own at every level. */
function full(version: 2 | 3): JsonObject {
  const json = parseJson(`{
    "format-version": ${version},
    "table-uuid": "9c12d441-03fe-4693-9a96-a0705ddf69c1",
    "location": "s3://bucket/t",
    "last-sequence-number": 34,
    "last-updated-ms": 1602638573590,
    "last-column-id": 4,
    "current-schema-id": 1,
    "schemas": [
      {"type": "struct", "schema-id": 0, "fields": [{"id": 1, "name": "id", "required": true, "type": "long"}]},
      {"type": "struct", "schema-id": 1, "identifier-field-ids": [1], "fields": ${JSON.stringify(fields)}, "x-schema": {"a": [1]}}
    ],
    "default-spec-id": 0,
    "partition-specs": [
      {"spec-id": 0, "fields": [{"name": "id_b", "transform": "bucket[8]", "source-id": 1, "field-id": 1000, "x-part": 1}], "x-spec": 2}
    ],
    "last-partition-id": 1000,
    "default-sort-order-id": 3,
    "sort-orders": [
      {"order-id": 3, "fields": [{"transform": "identity", "source-id": 1, "direction": "asc", "null-order": "nulls-first"}], "x-order": 3}
    ],
    "properties": {"read.split.target.size": "134217728"},
    "current-snapshot-id": 3055729675574597004,
    ${version === 3 ? '"next-row-id": 9007199254740993,' : ''}
    "refs": {
      "main": {"snapshot-id": 3055729675574597004, "type": "branch", "min-snapshots-to-keep": 3, "max-snapshot-age-ms": 9223372036854775807},
      "v1": {"snapshot-id": 3051729675574597004, "type": "tag", "max-ref-age-ms": 1000, "x-ref": true}
    },
    "snapshots": [
      {"snapshot-id": 3051729675574597004, "timestamp-ms": 1515100955770, "summary": {"operation": "append"}, "manifest-list": "s3://a/b/1.avro"},
      {"sequence-number": 1, "snapshot-id": 3055729675574597004, "parent-snapshot-id": 3051729675574597004,
       "timestamp-ms": 1555100955770, "summary": {"operation": "append", "added-records": "5"}, "manifest-list": "s3://a/b/2.avro",
       "schema-id": 1, ${version === 3 ? '"first-row-id": 0, "added-rows": 5,' : ''} "x-snapshot": 12345678901234567890}
    ],
    "statistics": [{"snapshot-id": 3055729675574597004, "statistics-path": "s3://a/s.puffin", "file-size-in-bytes": 413,
      "file-footer-size-in-bytes": 42, "blob-metadata": [{"type": "ndv", "snapshot-id": 3055729675574597004, "sequence-number": 1,
      "fields": [1], "properties": {"ndv": "3"}}]}],
    "partition-statistics": [{"snapshot-id": 3055729675574597004, "statistics-path": "s3://a/p.parquet", "file-size-in-bytes": 43}],
    "snapshot-log": [{"timestamp-ms": 1515100955770, "snapshot-id": 3051729675574597004}, {"timestamp-ms": 1555100955770, "snapshot-id": 3055729675574597004}],
    "metadata-log": [{"timestamp-ms": 1515100, "metadata-file": "s3://bucket/.../v1.json", "x-log": null}],
    "x-table": {"nested": [1.10, {"id": 99999999999999999999}]}
  }`)
  return json as JsonObject
}

test.each([2, 3] as const)('a v%d table is written as it was read, unknown keys included', (version) => {
  const json = full(version)
  const metadata = parseTableMetadata(stringifyJson(json))
  expect(stringifyJson(tableMetadataToJson(metadata))).toBe(stringifyJson(json))
  expect(currentSnapshot(metadata)?.snapshotId).toBe(3055729675574597004n)
  expect(currentSnapshot(metadata, 'v1')?.snapshotId).toBe(3051729675574597004n)
  expect(metadata.refs.get('main')?.maxSnapshotAgeMs).toBe(9223372036854775807n)
})

test('a row id beyond 2^53 is exact', () => {
  expect(parseTableMetadata(stringifyJson(full(3))).nextRowId).toBe(9007199254740993n)
})

test('gzip is told by the bytes when reading, and by the name when writing', () => {
  const text = stringifyJson(full(2))
  const metadata = parseTableMetadata(gzipSync(text))
  for (const name of ['00001-a.gz.metadata.json', 'v1.metadata.json.gz']) {
    expect(gunzipSync(serializeTableMetadata(metadata, name)).toString()).toBe(text)
  }
  expect(Buffer.from(serializeTableMetadata(metadata, 'v1.metadata.json')).toString()).toBe(text)
  expect(metadataFileExtension({ 'write.metadata.compression-codec': 'gzip' })).toBe('.gz.metadata.json')
  expect(metadataFileExtension({})).toBe('.metadata.json')
})

const oldV1: JsonObject = {
  'format-version': 1,
  location: 's3://bucket/t',
  'last-updated-ms': 1602638573874,
  'last-column-id': 4,
  schema: { type: 'struct', fields },
  'partition-spec': [{ name: 'id', transform: 'identity', 'source-id': 1 }],
  properties: {},
  'current-snapshot-id': 7,
  snapshots: [{ 'snapshot-id': 7, 'timestamp-ms': 1, manifests: ['s3://bucket/m0.avro'] }],
}

test('the deprecated forms of v1 are read, and written along with the new ones', () => {
  const metadata = parseTableMetadata(stringifyJson(oldV1))
  expect(metadata).toMatchObject({
    currentSchemaId: 0,
    defaultSpecId: 0,
    lastPartitionId: 1000,
    lastSequenceNumber: 0n,
    currentSnapshotId: 7n,
    partitionSpecs: [{ specId: 0, fields: [{ fieldId: 1000, sourceId: 1 }] }],
    sortOrders: [{ orderId: 0, fields: [] }],
    snapshots: [{ manifests: ['s3://bucket/m0.avro'], sequenceNumber: 0n }],
  })
  expect(metadata.refs.get('main')).toEqual({ snapshotId: 7n, type: 'branch' })
  const written = tableMetadataToJson(metadata)
  expect(written['schema']).toEqual({ 'schema-id': 0, ...(oldV1['schema'] as JsonObject) })
  expect(written).toMatchObject({ 'partition-spec': [{ 'field-id': 1000, transform: 'identity' }], schemas: [{}] })
  expect(written).not.toHaveProperty('last-sequence-number')
  expect(written).not.toHaveProperty('next-row-id')
})

test('no snapshot is -1 up to v2 and null in v3', () => {
  const empty = (version: 2 | 3): TableMetadata =>
    parseTableMetadata(
      stringifyJson({ ...full(version), 'current-snapshot-id': -1, refs: {}, snapshots: [], 'snapshot-log': [] }),
    )
  expect(empty(2).currentSnapshotId).toBeUndefined()
  expect(tableMetadataToJson(empty(2))['current-snapshot-id']).toBe(-1)
  expect(tableMetadataToJson(empty(3))['current-snapshot-id']).toBe(null)
})

test.each<[string, JsonObject, string, string]>([
  ['a newer version', { 'format-version': 4 }, 'metadata_unsupported', 'format version 4'],
  ['encryption', { 'encryption-keys': [{ 'key-id': 'a' }] }, 'metadata_unsupported', 'encryption keys'],
  ['no schemas', { schemas: null }, 'metadata_invalid', '"schemas" must exist'],
  ['no current schema', { 'current-schema-id': 9 }, 'metadata_invalid', 'schema 9 is not among'],
  ['no default spec', { 'default-spec-id': 9 }, 'metadata_invalid', 'partition spec 9 is not among'],
  ['no uuid', { 'table-uuid': null }, 'metadata_invalid', 'lacks "table-uuid"'],
  ['a current snapshot off main', { 'current-snapshot-id': 3051729675574597004n }, 'metadata_invalid', 'main is at'],
  ['a dangling ref', { snapshots: [] }, 'metadata_invalid', 'is not in the table'],
  ['an id beyond 64 bits', { 'current-snapshot-id': 9876543210123456789n }, 'metadata_invalid', 'not a 64-bit integer'],
  ['a low last sequence number', { 'last-sequence-number': 0 }, 'metadata_invalid', 'sequence number above the last'],
  [
    'an unknown type',
    { schemas: [{ type: 'struct', 'schema-id': 1, fields: [{ id: 1, name: 'a', required: true, type: 'blob' }] }] },
    'metadata_unsupported',
    'Column "a" has the type "blob"',
  ],
])('%s is refused', (_, change, code, message) => {
  expect(() => parseTableMetadata(stringifyJson({ ...full(2), ...change }), 'x.json')).toThrow(
    expect.objectContaining({ code, message: expect.stringContaining(message) }),
  )
})

test('a table with an unknown transform is read, and must not be written', () => {
  const json = full(2)
  const spec = { 'spec-id': 0, fields: [{ name: 'z', transform: 'zorder', 'source-id': 1, 'field-id': 1000 }] }
  const metadata = parseTableMetadata(stringifyJson({ ...json, 'partition-specs': [spec] }))
  expect(tableMetadataToJson(metadata)['partition-specs']).toEqual([spec])
  expect(() => assertWritable(metadata)).toThrow('partitioned by zorder of column id')
  const encrypted = parseTableMetadata(stringifyJson({ ...json, properties: { 'encryption.key-id': 'k' } }))
  expect(() => assertWritable(encrypted)).toThrow('is encrypted')
  expect(() => assertWritable(parseTableMetadata(stringifyJson(json)))).not.toThrow()
})

test.each([2, 3] as const)(
  'a file of version %i is the same when it is read and written in slices',
  async (version) => {
    const metadata = parseTableMetadata(stringifyJson(full(version)))
    const text = stringifyJson(tableMetadataToJson(metadata))
    for (const name of ['v1.metadata.json', 'v1.gz.metadata.json']) {
      const content = await encodeTableMetadata(metadata, name)
      expect(await readTableMetadata(content, name)).toEqual(metadata)
      expect(Buffer.compare(content, serializeTableMetadata(metadata, name))).toBe(0)
    }
    expect(Buffer.from(serializeTableMetadata(metadata, 'v1.metadata.json')).toString()).toBe(text)
  },
)
