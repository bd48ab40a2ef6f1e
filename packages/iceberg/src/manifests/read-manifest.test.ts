import { expect, test } from 'vitest'
import type { AvroWriter } from '../avro/avro-writer.ts'
import { createAvroFile } from '../avro/container-writer.ts'
import type { Schema } from '../schema/schema.ts'
import type { ContentFile, ManifestEntry } from './content-file.ts'
import type { ManifestFile } from './manifest-file.ts'
import { readManifest, streamManifest } from './read-manifest.ts'
import { createManifestWriter } from './write-manifest.ts'

/** An unpartitioned manifest of v3, as it is written here. */
function write(files: readonly ContentFile[]): { content: Buffer; manifest: ManifestFile } {
  const schema: Schema = { schemaId: 0, identifierFieldIds: [], fields: [] }
  const partitionSpec = { specId: 0, fields: [] }
  const writer = createManifestWriter({ formatVersion: 3, content: 'data', schema, partitionSpec, snapshotId: 1n })
  for (const file of files) writer.add({ status: 'added', file })
  return writer.finish('s3://b/m.avro')
}

/** A manifest as another writer may write it: other order, other names, unions turned round, fields of its own. */
function foreignManifest(): Buffer {
  const field = (id: number, type: unknown, name = `f${id}`): unknown => ({ name, type, 'field-id': id })
  const text = JSON.stringify({
    type: 'record',
    name: 'entry',
    fields: [
      field(2, {
        type: 'record',
        name: 'file',
        fields: [
          field(9999, { type: 'map', values: ['null', { type: 'array', items: 'double' }] }),
          field(104, 'long'),
          field(103, 'int'),
          field(102, { type: 'record', name: 'p', fields: [field(1000, ['int', 'null'])] }),
          field(101, 'string'),
          field(100, 'string'),
          {
            name: 'column_sizes',
            type: [
              'null',
              {
                type: 'array',
                items: { type: 'record', name: 'kv', fields: [field(117, 'int'), field(118, ['null', 'long'])] },
              },
            ],
          },
        ],
      }),
      field(0, 'int'),
      field(1, ['long', 'null']),
    ],
  })
  const avro = createAvroFile(text, { 'partition-spec': '{"spec-id":0,"fields":[]}' }, 'null')
  avro.append((w: AvroWriter) => {
    w.list([0], () => {
      w.string('key')
      w.number(1)
      w.list([1, 2], (v) => w.double(v))
    })
    w.number(2 ** 34)
    w.number(12)
    w.number(0)
    w.number(-3)
    w.string('Parquet')
    w.string('path')
    // Sizes of two columns, the first of them null.
    w.number(1)
    w.list([undefined, 7], (size) => {
      w.number(size ?? 1)
      w.optional(size, (v) => w.number(v))
    })
    w.number(1)
    w.number(0)
    w.bigint(2n ** 60n)
  })
  return avro.finish()
}

test('fields are found by id, in any order, and what is not known is passed over', () => {
  const [entry] = readManifest(
    foreignManifest(),
    { manifestPath: 'm', partitionSpecId: 0 },
    { partition: [{ fieldId: 1000, name: 'p', type: { type: 'long' } }] },
  )
  expect(entry).toMatchObject({
    status: 'added',
    snapshotId: 2n ** 60n,
    sequenceNumber: 0n,
    file: {
      filePath: 'path',
      fileFormat: 'parquet',
      fileSizeInBytes: 2 ** 34,
      recordCount: 12,
      partition: [-3n],
      content: 'data',
    },
  })
  // Its maps are encoded in another way than ours, and are not taken over as they are.
  const file = { ...(entry as ManifestEntry).file, partition: [] }
  const ours = write([file])
  const [again] = readManifest(ours.content, { ...ours.manifest, sequenceNumber: 1n })
  expect([...(file.columnSizes ?? [])]).toEqual([[7, 7]])
  expect([...(again?.file.columnSizes ?? [])]).toEqual([[7, 7]])
})

test('a manifest that arrives in pieces gives the same entries', async () => {
  const bounds = new Map([[1, Buffer.alloc(200, 7)]])
  const many = Array.from({ length: 3000 }, (_, i): ContentFile => ({
    content: 'data',
    filePath: `f${i}`,
    fileFormat: 'parquet',
    specId: 0,
    partition: [],
    recordCount: i,
    fileSizeInBytes: 1,
    lowerBounds: bounds,
    splitOffsets: [i],
  }))
  const { content, manifest } = write(many)
  const source = { ...manifest, sequenceNumber: 9n, firstRowId: 0n }
  async function* pieces(): AsyncGenerator<Uint8Array> {
    for (let at = 0; at < content.length; at += 1000) yield content.subarray(at, at + 1000)
  }
  const streamed: ManifestEntry[] = []
  for await (const entries of streamManifest(pieces(), source)) streamed.push(...entries)
  expect(streamed.map((e) => [e.file.filePath, e.file.firstRowId])).toEqual(
    readManifest(content, source).map((e) => [e.file.filePath, e.file.firstRowId]),
  )
  expect(streamed).toHaveLength(3000)
})
