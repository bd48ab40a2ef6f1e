import { IcebergError } from '../errors.ts'
import type { Json, JsonObject } from '../json/json.ts'
import { compact, ObjectReader } from '../json/object-reader.ts'
import { type PartitionField, type PartitionSpec, type Transform, transformText } from './partition-spec.ts'

const firstPartitionFieldId = 1000

/** Reads a transform's text. One that is not known is kept, and refused when it is to be applied or written under. */
export function parseTransform(text: string): Transform {
  switch (text) {
    case 'identity':
    case 'year':
    case 'month':
    case 'day':
    case 'hour':
    case 'void':
      return { name: text }
    default: {
      const [, name, parameter] = /^(bucket|truncate)\[(\d+)\]$/.exec(text) ?? []
      if (Number(parameter) >= 1) {
        return name === 'bucket'
          ? { name: 'bucket', buckets: Number(parameter) }
          : { name: 'truncate', width: Number(parameter) }
      }
      return { name: 'unknown', text }
    }
  }
}

/** One source, or several for a transform of several arguments: those are unknown to this release, whatever their name. */
export function sourceFromJson(r: ObjectReader): {
  transform: Transform
  sourceId: number
  sourceIds?: readonly number[]
} {
  const text = r.string('transform')
  const sourceIds = r.optionalArray('source-ids', (id, what) => {
    if (typeof id !== 'number') throw new IcebergError('metadata_invalid', `${what} is not a field id`)
    return id
  })
  if (sourceIds === undefined) return { transform: parseTransform(text), sourceId: r.int('source-id') }
  const [sourceId = r.int('source-id')] = sourceIds
  r.raw('source-id')
  const transform: Transform = sourceIds.length === 1 ? parseTransform(text) : { name: 'unknown', text }
  return { transform, sourceId, sourceIds }
}

export function sourceToJson(field: { sourceId: number; sourceIds?: readonly number[] }): JsonObject {
  return field.sourceIds === undefined ? { 'source-id': field.sourceId } : { 'source-ids': [...field.sourceIds] }
}

export function partitionFieldsFromJson(r: ObjectReader, key: string): PartitionField[] {
  let withIds = 0
  const fields = r.array(key, (json, what) => {
    const f = new ObjectReader(json, what)
    const fieldId = f.optionalInt('field-id')
    if (fieldId !== undefined) withIds += 1
    return { fieldId: fieldId ?? -1, name: f.string('name'), ...sourceFromJson(f), ...f.unknown() }
  })
  // v1 writers left the ids out: they are numbered from 1000 in each spec.
  if (withIds === 0) return fields.map((field, index) => ({ ...field, fieldId: firstPartitionFieldId + index }))
  if (withIds === fields.length) return fields
  throw new IcebergError('metadata_invalid', `"${key}" of a partition spec has field ids on some fields only`)
}

export function partitionSpecFromJson(json: Json | undefined, what = 'partition spec'): PartitionSpec {
  const r = new ObjectReader(json, what)
  return { specId: r.int('spec-id'), fields: partitionFieldsFromJson(r, 'fields'), ...r.unknown() }
}

export function partitionSpecToJson(spec: PartitionSpec): JsonObject {
  return compact({ 'spec-id': spec.specId, fields: partitionFieldsToJson(spec), ...spec.unknownKeys })
}

/** The fields alone, as manifests and old metadata have them. */
export function partitionFieldsToJson(spec: PartitionSpec): JsonObject[] {
  return spec.fields.map((field) =>
    compact({
      name: field.name,
      transform: transformText(field.transform),
      ...sourceToJson(field),
      'field-id': field.fieldId,
      ...field.unknownKeys,
    }),
  )
}
