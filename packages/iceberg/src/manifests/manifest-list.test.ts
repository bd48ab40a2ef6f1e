import { expect, test } from 'vitest'
import { openAvro } from '../avro/container.ts'
import type { FormatVersion } from '../metadata/table-metadata.ts'
import type { ManifestFile } from './manifest-file.ts'
import { readManifestList } from './read-manifest-list.ts'
import { writeManifestList } from './write-manifest-list.ts'

const snapshotId = 2n ** 62n + 3n
const isNew: ManifestFile = {
  manifestPath: 's3://b/new.avro',
  manifestLength: 2 ** 40,
  partitionSpecId: 3,
  content: 'data',
  sequenceNumber: undefined,
  minSequenceNumber: undefined,
  addedSnapshotId: snapshotId,
  addedFilesCount: 1,
  existingFilesCount: 2,
  deletedFilesCount: 3,
  addedRowsCount: 10,
  existingRowsCount: 20,
  deletedRowsCount: 2 ** 35,
  partitions: [{ containsNull: true, containsNan: false, lowerBound: Buffer.from([1]) }],
}
const isOld: ManifestFile = { ...isNew, addedSnapshotId: 7n, sequenceNumber: 5n, minSequenceNumber: 4n, partitions: [] }

function write(formatVersion: FormatVersion, manifests: ManifestFile[]) {
  const sequenceNumber = formatVersion === 1 ? 0n : 9n
  const options = { formatVersion, snapshotId, parentSnapshotId: 77n, sequenceNumber }
  return writeManifestList(manifests, formatVersion === 3 ? { ...options, firstRowId: 2n ** 60n } : options)
}

test('new manifests take the number of the commit, others keep theirs, and nothing is lost', () => {
  const listed = readManifestList(write(2, [isNew, isOld]).content, 'l.avro')
  expect(listed).toEqual([{ ...isNew, sequenceNumber: 9n, minSequenceNumber: 9n }, isOld])
  expect(readManifestList(write(1, [isNew]).content, 'l.avro')).toEqual([
    { ...isNew, sequenceNumber: 0n, minSequenceNumber: 0n },
  ])
})

test('manifests of data without row ids are given them one after the other, their existing rows too', () => {
  const numbered = { ...isOld, firstRowId: 5n }
  const deletes = { ...isOld, content: 'deletes' as const }
  const { manifests, addedRows, content } = write(3, [isNew, numbered, deletes, isOld])
  const given = [2n ** 60n, 5n, undefined, 2n ** 60n + 30n]
  expect(manifests.map((manifest) => manifest.firstRowId)).toEqual(given)
  expect(readManifestList(content, 'l.avro').map((manifest) => manifest.firstRowId)).toEqual(given)
  expect(addedRows).toBe(60n)
})

const path = ['500 manifest_path', '501 manifest_length', '502 partition_spec_id']
const files = ['504 added_files_count', '505 existing_files_count', '506 deleted_files_count']
const rows = ['512 added_rows_count', '513 existing_rows_count', '514 deleted_rows_count']
const numbers = ['517 content', '515 sequence_number', '516 min_sequence_number', '503 added_snapshot_id']
test.each<[FormatVersion, string[], string[]]>([
  [
    1,
    ['snapshot-id', 'parent-snapshot-id', 'format-version'],
    [...path, '503 added_snapshot_id', ...files, '507 partitions', ...rows, '519 key_metadata'],
  ],
  [
    2,
    ['snapshot-id', 'parent-snapshot-id', 'sequence-number', 'format-version'],
    [...path, ...numbers, ...files, ...rows, '507 partitions', '519 key_metadata'],
  ],
  [
    3,
    ['snapshot-id', 'parent-snapshot-id', 'sequence-number', 'first-row-id', 'format-version'],
    [...path, ...numbers, ...files, ...rows, '507 partitions', '519 key_metadata', '520 first_row_id'],
  ],
])('the header of a v%d list, and its fields, are those that Iceberg expects', (version, keys, fields) => {
  const { metadata } = openAvro(write(version, [isNew]).content, 'l.avro')
  expect([...metadata.keys()]).toEqual(['avro.schema', 'avro.codec', ...keys, 'iceberg.schema'])
  expect(metadata.get('snapshot-id')).toBe(String(snapshotId))
  expect(metadata.get('parent-snapshot-id')).toBe('77')
  const avro = JSON.parse(metadata.get('avro.schema') ?? '') as {
    name: string
    fields: { name: string; 'field-id': number; type: unknown }[]
  }
  expect(avro.name).toBe('manifest_file')
  expect(avro.fields.map((field) => `${field['field-id']} ${field.name}`)).toEqual(fields)
  const optional = avro.fields.filter(({ type }) => Array.isArray(type)).map((field) => field['field-id'])
  const counts = version === 1 ? [504, 505, 506, 507, 512, 513, 514, 519] : [507, 519, ...(version === 3 ? [520] : [])]
  expect(optional).toEqual(counts)
})

test('the first snapshot of a table has the parent "null"', () => {
  const options = { formatVersion: 2, snapshotId, parentSnapshotId: undefined, sequenceNumber: 1n } as const
  const { metadata } = openAvro(writeManifestList([], options).content, 'l.avro')
  expect(metadata.get('parent-snapshot-id')).toBe('null')
})

test('an unpartitioned manifest has an empty list of summaries, not none', () => {
  expect(readManifestList(write(2, [{ ...isNew, partitions: [] }]).content, 'l')[0]?.partitions).toEqual([])
  expect(readManifestList(write(2, [{ ...isNew, partitions: undefined }]).content, 'l')[0]?.partitions).toBeUndefined()
})

test('an encrypted manifest is refused when its list is read', () => {
  const { content } = write(2, [{ ...isNew, keyMetadata: Buffer.from([1]) }])
  expect(() => readManifestList(content, 'l')).toThrow(
    expect.objectContaining({ code: 'metadata_unsupported', message: expect.stringContaining('is encrypted') }),
  )
})

test('a list takes no manifest of another snapshot without a number, and no unknown counts', () => {
  expect(() => write(2, [{ ...isNew, addedSnapshotId: 1n }])).toThrow('it has no sequence number')
  expect(() => write(2, [{ ...isOld, addedFilesCount: undefined }])).toThrow('addedFilesCount is not known')
  expect(() => write(1, [{ ...isOld, content: 'deletes' }])).toThrow('has no delete manifests')
  const options = { formatVersion: 3, snapshotId, parentSnapshotId: undefined, sequenceNumber: 4n } as const
  expect(() => writeManifestList([isNew], options)).toThrow('needs the first row id')
})
