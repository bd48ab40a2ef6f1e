import { expect, test } from 'vitest'
import type { AvroWriter } from '../avro/avro-writer.ts'
import { createAvroFile } from '../avro/container-writer.ts'
import { manifestPartitionType, readManifest } from './read-manifest.ts'

// BigQuery declares every field of its manifests nullable, also the data file itself and the pairs of its maps.

const nullable = (type: unknown): unknown => ['null', type]
const field = (id: number, name: string, type: unknown): unknown => ({ name, type: nullable(type), 'field-id': id })

const schema = JSON.stringify({
  type: 'record',
  name: 'manifest_entry',
  fields: [
    field(0, 'status', 'int'),
    field(1, 'snapshot_id', 'long'),
    field(2, 'data_file', {
      type: 'record',
      name: 'r2',
      fields: [
        field(100, 'file_path', 'string'),
        field(101, 'file_format', 'string'),
        field(102, 'partition', {
          type: 'record',
          name: 'r102',
          fields: [field(1000, 'day', { type: 'int', logicalType: 'date' })],
        }),
        field(103, 'record_count', 'long'),
        field(104, 'file_size_in_bytes', 'long'),
        field(110, 'null_value_counts', {
          type: 'array',
          logicalType: 'map',
          items: nullable({
            type: 'record',
            name: 'k121_v122',
            fields: [field(121, 'key', 'int'), field(122, 'value', 'long')],
          }),
        }),
        field(132, 'split_offsets', { type: 'array', items: nullable('long') }),
      ],
    }),
  ],
})

function manifest(path: string | undefined): Buffer {
  const avro = createAvroFile(schema, { 'partition-spec': '[]' }, 'null')
  avro.append((w: AvroWriter) => {
    const given = <T>(value: T, write: (value: T) => void): void => w.optional(value, write)
    given(1, (v) => w.number(v))
    given(7, (v) => w.number(v))
    w.optional(path, (text) => {
      given(text, (v) => w.string(v))
      given('PARQUET', (v) => w.string(v))
      given(1, () => given(20_000, (v) => w.number(v)))
      given(3, (v) => w.number(v))
      given(900, (v) => w.number(v))
      const pairs = [[4, 2], undefined, [5, undefined]] as const
      given(pairs, () => {
        w.list(pairs, (pair) =>
          w.optional(pair, ([key, value]) => {
            given(key, (v) => w.number(v))
            w.optional(value, (v) => w.number(v))
          }),
        )
      })
      given([4], (offsets) => w.list(offsets, (offset) => given(offset, (v) => w.number(v))))
    })
  })
  return avro.finish()
}

const source = { manifestPath: 'm.avro', partitionSpecId: 0 }
const partition = [{ fieldId: 1000, name: 'day', type: { type: 'date' } }] as const

test('a manifest whose data file and map pairs are nullable is read', () => {
  const [entry] = readManifest(manifest('s3://b/f.parquet'), source, { partition })
  expect(entry).toMatchObject({
    status: 'added',
    snapshotId: 7n,
    file: {
      filePath: 's3://b/f.parquet',
      fileFormat: 'parquet',
      partition: [20_000],
      recordCount: 3,
      splitOffsets: [4],
    },
  })
  expect([...(entry?.file.nullValueCounts ?? [])]).toEqual([[4, 2]])
  const [without] = readManifest(manifest('s3://b/f.parquet'), source, { partition, statistics: false })
  expect(without?.file).toMatchObject({ filePath: 's3://b/f.parquet', splitOffsets: [4], nullValueCounts: undefined })
})

test('the types of nullable partition values are found in the manifest', () => {
  expect([...manifestPartitionType(manifest('f'), 'm.avro')]).toEqual([[1000, { type: 'date' }]])
})

test('an entry without its data file is refused', () => {
  expect(() => readManifest(manifest(undefined), source, { partition })).toThrow(
    'm.avro: A manifest entry has no data file',
  )
})
