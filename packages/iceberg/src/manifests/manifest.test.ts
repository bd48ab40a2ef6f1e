import fc from 'fast-check'
import { expect, test } from 'vitest'
import { openAvro } from '../avro/container.ts'
import type { PartitionSpec } from '../schema/partition-spec.ts'
import type { Schema } from '../schema/schema.ts'
import type { FormatVersion } from '../metadata/table-metadata.ts'
import { parsePrimitiveType } from '../schema/type-json.ts'
import type { Value } from '../values/value.ts'
import { type ContentFile, fileKey, type ManifestEntry } from './content-file.ts'
import type { ManifestFile } from './manifest-file.ts'
import { partitionType } from './partition-type.ts'
import { embeddedManifest, readManifest, readManifestHeader } from './read-manifest.ts'
import { readManifestList } from './read-manifest-list.ts'
import { createManifestWriter, type ManifestWriterOptions, type NewManifestEntry } from './write-manifest.ts'
import { writeManifestList } from './write-manifest-list.ts'

const samples: [string, Value][] = [
  ['boolean', true],
  ['int', -5],
  ['long', 2n ** 62n],
  ['float', 1.5],
  ['double', -2.25],
  ['date', -1],
  ['time', 5n],
  ['timestamp', -7n],
  ['timestamptz', 8n],
  ['timestamp_ns', 9n],
  ['string', 'ü 😀'],
  ['uuid', 'f79c3e09-677c-4bbd-a479-3f349cb785e7'],
  ['binary', Buffer.from([1, 2])],
  ['fixed[3]', Buffer.from([1, 2, 3])],
  ['decimal(9, 2)', -1420n],
  ['decimal(38, 10)', -(10n ** 37n)],
]

const schema: Schema = {
  schemaId: 0,
  identifierFieldIds: [],
  // Names that Avro does not allow, and each type twice: Avro defines a name once only.
  fields: [...samples, ...samples].map(([type], index) => ({
    id: index + 1,
    name: `${index} größe.${type}`,
    required: false,
    type: parsePrimitiveType(type),
  })),
}
const partitionSpec: PartitionSpec = {
  specId: 3,
  fields: schema.fields.map((f, i) => ({
    fieldId: 1000 + i,
    sourceId: f.id,
    name: f.name,
    transform: { name: 'identity' },
  })),
}
const partition = [...samples.map(([, value]) => value), ...samples.map(() => null)]
const snapshotId = 2n ** 62n + 3n

const dataFile: ContentFile = {
  content: 'data',
  filePath: 's3://b/a b/ü.parquet',
  fileFormat: 'parquet',
  specId: 3,
  partition,
  recordCount: 10,
  fileSizeInBytes: 2 ** 40,
  columnSizes: new Map([
    [1, 5],
    [2, 2 ** 35],
  ]),
  valueCounts: new Map([[1, 10]]),
  nullValueCounts: new Map([[1, 0]]),
  nanValueCounts: new Map(),
  lowerBounds: new Map([[1, Buffer.from([1])]]),
  upperBounds: new Map([[1, Buffer.alloc(200, 7)]]),
  splitOffsets: [4, 2 ** 33],
  sortOrderId: 0,
}

function write(
  formatVersion: FormatVersion,
  entries: NewManifestEntry[],
  more: Partial<ManifestWriterOptions> = {},
): { content: Buffer; manifest: ManifestFile } {
  const writer = createManifestWriter({ formatVersion, content: 'data', schema, partitionSpec, snapshotId, ...more })
  for (const entry of entries) writer.add(entry)
  return writer.finish('s3://b/m.avro')
}

const history: NewManifestEntry[] = [
  { status: 'added', file: dataFile },
  { status: 'added', sequenceNumber: 3n, file: { ...dataFile, filePath: 'compacted', recordCount: 20 } },
  {
    status: 'existing',
    snapshotId: 77n,
    sequenceNumber: 2n,
    fileSequenceNumber: 2n,
    file: { ...dataFile, filePath: 'old', firstRowId: 5000n },
  },
  {
    status: 'existing',
    snapshotId: 77n,
    sequenceNumber: 2n,
    fileSequenceNumber: undefined,
    file: { ...dataFile, filePath: 'v2' },
  },
  {
    status: 'deleted',
    snapshotId: 77n,
    sequenceNumber: 1n,
    fileSequenceNumber: 1n,
    file: { ...dataFile, filePath: 'gone', firstRowId: 6000n },
  },
]

function plain(file: ContentFile): unknown {
  return Object.fromEntries(
    Object.entries(file)
      .filter(([, value]) => value !== undefined)
      .map(([key, value]) => [
        key,
        value instanceof Object && 'entries' in value && !Array.isArray(value) && !Buffer.isBuffer(value)
          ? [...(value as Map<number, unknown>)]
          : value,
      ]),
  )
}

test.each([1, 2, 3] as const)('a v%d manifest comes back with what its entries inherit', (version) => {
  const { content, manifest } = write(version, history)
  const list = writeManifestList([manifest], {
    formatVersion: version,
    snapshotId,
    parentSnapshotId: 77n,
    sequenceNumber: version === 1 ? 0n : 9n,
    ...(version === 3 ? { firstRowId: 100n } : {}),
  })
  const [listed] = readManifestList(list.content, 'l.avro')
  const entries = readManifest(content, listed as ManifestFile, { deleted: true })
  const numbers = entries.map((e) => [
    e.status,
    e.snapshotId,
    e.sequenceNumber,
    e.fileSequenceNumber,
    e.file.firstRowId,
  ])
  const row = (id: bigint): bigint | undefined => (version === 3 ? id : undefined)
  const sequence = (number: bigint): bigint => (version === 1 ? 0n : number)
  expect(numbers).toEqual([
    ['added', snapshotId, sequence(9n), sequence(9n), row(100n)],
    ['added', snapshotId, sequence(3n), sequence(9n), row(110n)],
    ['existing', 77n, sequence(2n), sequence(2n), row(5000n)],
    ['existing', 77n, sequence(2n), version === 1 ? 0n : undefined, row(130n)],
    ['deleted', snapshotId, sequence(1n), sequence(1n), row(6000n)],
  ])
  expect(plain(entries[0]?.file as ContentFile)).toEqual({
    ...(plain(dataFile) as object),
    ...(version === 3 ? { firstRowId: 100n } : {}),
  })
  expect(list.addedRows).toBe(version === 3 ? 50n : 0n)
  expect(listed).toMatchObject({
    sequenceNumber: sequence(9n),
    minSequenceNumber: sequence(2n),
    addedFilesCount: 2,
    existingFilesCount: 2,
    deletedFilesCount: 1,
    addedRowsCount: 30,
    existingRowsCount: 20,
    deletedRowsCount: 10,
  })
  expect(listed?.partitions?.[1]).toEqual({
    containsNull: false,
    containsNan: false,
    lowerBound: Buffer.from('fbffffff', 'hex'),
    upperBound: Buffer.from('fbffffff', 'hex'),
  })
  expect(listed?.partitions?.[samples.length]).toEqual({ containsNull: true, containsNan: false })
})

test('live entries alone are given unless deleted ones are asked for, and row ids count the same', () => {
  const { content, manifest } = write(3, history.toReversed())
  const source = { ...manifest, sequenceNumber: 9n, firstRowId: 100n }
  const live = readManifest(content, source)
  const all = readManifest(content, source, { deleted: true })
  expect(live.map((e) => e.file.filePath)).toEqual(['v2', 'old', 'compacted', dataFile.filePath])
  expect(live.map((e) => e.file.firstRowId)).toEqual([100n, 5000n, 110n, 130n])
  expect(all.slice(1).map((e) => e.file.firstRowId)).toEqual(live.map((e) => e.file.firstRowId))
})

test('row ids in a manifest that was given none are from a writer that did not know better', () => {
  const { content, manifest } = write(3, history)
  const entries = readManifest(content, { ...manifest, sequenceNumber: 9n })
  expect(entries.every((entry) => entry.file.firstRowId === undefined)).toBe(true)
})

test('without statistics the rest is the same', () => {
  const { content, manifest } = write(2, history)
  const entries = readManifest(content, { ...manifest, sequenceNumber: 9n }, { statistics: false })
  expect(entries[0]?.file).toMatchObject({
    filePath: dataFile.filePath,
    partition,
    lowerBounds: undefined,
    splitOffsets: [4, 2 ** 33],
  })
})

test('the partition spec of the table, given in another order, orders the values', () => {
  const { content, manifest } = write(2, history)
  const fields = partitionType(partitionSpec, schema).toReversed()
  const [entry] = readManifest(content, { ...manifest, sequenceNumber: 9n }, { partition: fields })
  expect(entry?.file.partition).toEqual(partition.toReversed())
})

test('an entry taken from one manifest into another keeps everything', () => {
  const first = write(3, history)
  const entries = readManifest(first.content, { ...first.manifest, sequenceNumber: 9n, firstRowId: 100n })
  const moved = write(
    3,
    entries.map((entry) => ({ ...entry, status: 'existing' })),
    { firstRowId: 500n },
  )
  const again = readManifest(moved.content, { ...moved.manifest, sequenceNumber: 10n })
  const shown = (e: ManifestEntry): unknown => [e.snapshotId, e.sequenceNumber, e.fileSequenceNumber, plain(e.file)]
  expect(again.map(shown)).toEqual(entries.map(shown))
  expect(moved.manifest.minSequenceNumber).toBe(2n)
})

test('delete files and deletion vectors have their own fields', () => {
  const equality: ContentFile = { ...dataFile, content: 'equality-deletes', equalityIds: [1, 2] }
  const vector: ContentFile = {
    ...dataFile,
    content: 'position-deletes',
    filePath: 'dv.puffin',
    fileFormat: 'puffin',
    referencedDataFile: 's3://b/data.parquet',
    contentOffset: 4,
    contentSizeInBytes: 40,
  }
  const files = [equality, vector, { ...vector, contentOffset: 44 }]
  const { content, manifest } = write(
    3,
    files.map((file) => ({ status: 'added', file })),
    { content: 'deletes' },
  )
  const list = writeManifestList([manifest], {
    formatVersion: 3,
    snapshotId,
    parentSnapshotId: undefined,
    sequenceNumber: 4n,
    firstRowId: 7n,
  })
  expect(list.manifests[0]).toMatchObject({ content: 'deletes', firstRowId: undefined })
  expect(list.addedRows).toBe(0n)
  const entries = readManifest(content, readManifestList(list.content, 'l')[0] as ManifestFile)
  expect(entries.map((e) => plain(e.file))).toEqual(files.map(plain))
  expect(new Set(entries.map((e) => fileKey(e.file))).size).toBe(3)
})

interface AvroRecord {
  name: string
  fields: { name: string; 'field-id': number; type: unknown }[]
}

test('the header says what Iceberg expects', () => {
  const { content } = write(2, history)
  const { metadata } = openAvro(content, 'm')
  expect([...metadata.keys()]).toEqual([
    'avro.schema',
    'avro.codec',
    'schema',
    'schema-id',
    'partition-spec',
    'partition-spec-id',
    'format-version',
    'content',
    'iceberg.schema',
  ])
  const avro = JSON.parse(metadata.get('avro.schema') ?? '') as AvroRecord
  const file = avro.fields[4]?.type as AvroRecord
  expect(avro.fields.map((f) => `${f['field-id']} ${f.name}`)).toEqual([
    '0 status',
    '1 snapshot_id',
    '3 sequence_number',
    '4 file_sequence_number',
    '2 data_file',
  ])
  expect(file.name).toBe('r2')
  expect(file.fields.map((f) => f['field-id'])).toEqual([
    134, 100, 101, 102, 103, 104, 108, 109, 110, 137, 125, 128, 131, 132, 135, 140, 143,
  ])
  expect(file.fields[6]).toEqual({
    name: 'column_sizes',
    type: [
      'null',
      {
        type: 'array',
        items: {
          type: 'record',
          name: 'k117_v118',
          fields: [
            { name: 'key', type: 'int', 'field-id': 117 },
            { name: 'value', type: 'long', 'field-id': 118 },
          ],
        },
        logicalType: 'map',
      },
    ],
    default: null,
    'field-id': 108,
  })
  const tuple = file.fields[3]?.type as AvroRecord
  expect(tuple.fields[0]).toEqual({
    name: '_0_x20gr_xF6_xDFe_x2Eboolean',
    type: ['null', 'boolean'],
    default: null,
    'iceberg-field-name': '0 größe.boolean',
    'field-id': 1000,
  })
  expect(readManifestHeader(content, 'm')).toMatchObject({ formatVersion: 2, content: 'data', partitionSpec, schema })
})

test.each<[FormatVersion, number[], number[]]>([
  [1, [0, 1, 2], [100, 101, 102, 103, 104, 105, 108, 109, 110, 137, 125, 128, 131, 132, 140]],
  [
    3,
    [0, 1, 3, 4, 2],
    [134, 100, 101, 102, 103, 104, 108, 109, 110, 137, 125, 128, 131, 132, 135, 140, 142, 143, 144, 145],
  ],
])('the fields of v%d are in the order of Iceberg', (version, entryIds, fileIds) => {
  const { metadata } = openAvro(write(version, history).content, 'm')
  expect(metadata.get('content')).toBe(version === 1 ? undefined : 'data')
  const avro = JSON.parse(metadata.get('avro.schema') ?? '') as AvroRecord
  expect(avro.fields.map((f) => f['field-id'])).toEqual(entryIds)
  const file = avro.fields.at(-1)?.type as AvroRecord
  expect(file.fields.map((f) => f['field-id'])).toEqual(fileIds)
})

test.each<[string, FormatVersion, Partial<ManifestWriterOptions>, NewManifestEntry, string]>([
  [
    'deletes in v1',
    1,
    { content: 'deletes' },
    { status: 'added', file: { ...dataFile, content: 'equality-deletes' } },
    'no delete files',
  ],
  [
    'deletes among data',
    2,
    {},
    { status: 'added', file: { ...dataFile, content: 'equality-deletes' } },
    'cannot hold equality-deletes',
  ],
  ['another spec', 2, {}, { status: 'added', file: { ...dataFile, specId: 4 } }, 'it has partition spec 4'],
  [
    'too few partition values',
    2,
    {},
    { status: 'added', file: { ...dataFile, partition: [] } },
    '0 partition values for 32 fields',
  ],
  [
    'no equality ids',
    2,
    { content: 'deletes' },
    { status: 'added', file: { ...dataFile, content: 'equality-deletes' } },
    'no equality ids',
  ],
  [
    'a vector in v2',
    2,
    { content: 'deletes' },
    { status: 'added', file: { ...dataFile, content: 'position-deletes', fileFormat: 'puffin' } },
    'need format version 3',
  ],
  [
    'a vector of nothing',
    3,
    { content: 'deletes' },
    { status: 'added', file: { ...dataFile, content: 'position-deletes', fileFormat: 'puffin' } },
    'needs its data file',
  ],
  [
    'new position deletes in v3',
    3,
    { content: 'deletes' },
    { status: 'added', file: { ...dataFile, content: 'position-deletes' } },
    'as deletion vectors only',
  ],
  ['encryption', 2, {}, { status: 'added', file: { ...dataFile, keyMetadata: Buffer.from([1]) } }, 'it is encrypted'],
])('%s is refused', (_, version, options, entry, message) => {
  expect(() => write(version, [entry], options)).toThrow(
    expect.objectContaining({ code: 'manifest_invalid', message: expect.stringContaining(message) }),
  )
})

test('a manifest that a v1 snapshot names itself is described by its header', () => {
  const { content } = write(1, history)
  const manifest = embeddedManifest(content, 's3://b/m.avro', { snapshotId: 5n })
  expect(manifest).toMatchObject({
    partitionSpecId: 3,
    manifestLength: content.length,
    sequenceNumber: 0n,
    addedSnapshotId: 5n,
  })
  expect(readManifest(content, manifest).map((e) => [e.snapshotId, e.sequenceNumber])).toEqual([
    [snapshotId, 0n],
    [snapshotId, 0n],
    [77n, 0n],
    [77n, 0n],
  ])
})

test('statistics of any size come back', () => {
  const counts = fc
    .dictionary(fc.integer({ min: 1, max: 10_000 }).map(String), fc.nat())
    .map((o) => new Map(Object.entries(o).map(([k, v]) => [Number(k), v])))
  const bounds = fc
    .dictionary(fc.integer({ min: 1, max: 10_000 }).map(String), fc.uint8Array({ maxLength: 300 }))
    .map((o) => new Map(Object.entries(o).map(([k, v]) => [Number(k), Buffer.from(v)])))
  fc.assert(
    fc.property(
      counts,
      bounds,
      fc.bigInt({ min: 0n, max: 2n ** 63n - 1n }),
      (valueCounts, lowerBounds, sequenceNumber) => {
        const file = { ...dataFile, valueCounts, lowerBounds, upperBounds: undefined }
        const { content, manifest } = write(2, [{ status: 'added', sequenceNumber, file }])
        const [entry] = readManifest(content, { ...manifest, sequenceNumber: 1n })
        expect(plain(entry?.file as ContentFile)).toEqual(plain(file))
        expect(entry?.sequenceNumber).toBe(sequenceNumber)
      },
    ),
    { numRuns: 50 },
  )
})
