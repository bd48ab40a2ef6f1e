import { IcebergError } from '../errors.ts'
import { type PartitionField, type PartitionSpec, type Transform, transformText } from '../schema/partition-spec.ts'
import { findField } from '../schema/schema.ts'
import { partitionSpecOf, schemaOf, type TableMetadata } from './table-metadata.ts'
import type { MetadataUpdate } from './update.ts'

/** One step of partition evolution, applied in order on the default spec. */
export type PartitionChange =
  /** `name` default: made of the column and the transform, as in "ts_day" and "id_bucket_16". */
  | { readonly change: 'add'; readonly column: string; readonly transform: Transform; readonly name?: string }
  | { readonly change: 'remove'; readonly name: string }
  | { readonly change: 'rename'; readonly name: string; readonly to: string }

/** The updates that make the changed spec the one new data is written with. */
export function partitionSpecUpdates(metadata: TableMetadata, changes: readonly PartitionChange[]): MetadataUpdate[] {
  return [
    { action: 'add-spec', spec: evolvePartitionSpec(metadata, changes) },
    { action: 'set-default-spec', specId: -1 },
  ]
}

export function evolvePartitionSpec(metadata: TableMetadata, changes: readonly PartitionChange[]): PartitionSpec {
  let lastId = metadata.lastPartitionId
  let fields: readonly PartitionField[] = partitionSpecOf(metadata).fields
  const removed: PartitionField[] = []
  for (const change of changes) {
    switch (change.change) {
      case 'add': {
        const back = takeBack(metadata, removed, change)
        if (back !== undefined) {
          fields = restored(metadata, fields, back)
          break
        }
        const field = newField(metadata, change, () => (lastId += 1))
        fields = withAdded(fields, field)
        break
      }
      case 'remove': {
        const field = named(fields, change.name)
        removed.push(field)
        fields = withRemoved(metadata, fields, field)
        break
      }
      case 'rename':
        fields = withRenamed(fields, named(fields, change.name), change.to)
        break
    }
  }
  return { specId: -1, fields }
}

function sourceOf(metadata: TableMetadata, column: string): number {
  const source = findField(schemaOf(metadata), column)
  if (source === undefined) throw invalid(`there is no column "${column}"`)
  return source.id
}

/** A field removed a moment ago and added again is the same field. */
function takeBack(
  metadata: TableMetadata,
  removed: PartitionField[],
  change: PartitionChange & { change: 'add' },
): PartitionField | undefined {
  const sourceId = sourceOf(metadata, change.column)
  const index = removed.findIndex((field) => sameSource(field, sourceId, change.transform))
  const [field] = index < 0 ? [] : removed.splice(index, 1)
  return field === undefined ? undefined : { ...field, name: change.name ?? field.name }
}

function restored(
  metadata: TableMetadata,
  fields: readonly PartitionField[],
  back: PartitionField,
): readonly PartitionField[] {
  if (fields.some((field) => field.fieldId === back.fieldId)) {
    return fields.map((field) => (field.fieldId === back.fieldId ? back : field))
  }
  const order = partitionSpecOf(metadata).fields.map((field) => field.fieldId)
  const place = (field: PartitionField): number =>
    (order.indexOf(field.fieldId) + order.length + 1) % (order.length + 1)
  return [...fields, back].toSorted((a, b) => place(a) - place(b))
}

function newField(
  metadata: TableMetadata,
  change: PartitionChange & { change: 'add' },
  nextId: () => number,
): PartitionField {
  const sourceId = sourceOf(metadata, change.column)
  const { transform } = change
  if (metadata.formatVersion > 1) {
    // A field that an earlier spec had keeps its id, so that its values stay comparable over specs.
    const earlier = metadata.partitionSpecs
      .flatMap((spec) => spec.fields)
      .find((f) => sameSource(f, sourceId, transform) && (change.name === undefined || f.name === change.name))
    if (earlier !== undefined) return earlier
  }
  return { fieldId: nextId(), sourceId, name: change.name ?? defaultName(change.column, transform), transform }
}

function defaultName(column: string, transform: Transform): string {
  switch (transform.name) {
    case 'identity':
      return column
    case 'bucket':
      return `${column}_bucket_${transform.buckets}`
    case 'truncate':
      return `${column}_trunc_${transform.width}`
    case 'void':
      return `${column}_null`
    case 'unknown':
      throw invalid(`the transform ${transform.text} is not known`)
    case 'year':
    case 'month':
    case 'day':
    case 'hour':
      return `${column}_${transform.name}`
  }
}

const timeTransforms = new Set<Transform['name']>(['year', 'month', 'day', 'hour'])

function withAdded(fields: readonly PartitionField[], field: PartitionField): readonly PartitionField[] {
  const same = fields.find((f) => sameSource(f, field.sourceId, field.transform))
  if (same !== undefined) throw invalid(`the field "${same.name}" has this column and transform already`)
  const isTime = timeTransforms.has(field.transform.name)
  const redundant = fields.find((f) => isTime && f.sourceId === field.sourceId && timeTransforms.has(f.transform.name))
  if (redundant !== undefined) throw invalid(`"${field.name}" is redundant beside "${redundant.name}": both are times`)
  return [...freeName(fields, field.name), field]
}

/** A void field gives its name away. */
function freeName(fields: readonly PartitionField[], name: string): readonly PartitionField[] {
  return fields.map((field) => {
    if (field.name !== name) return field
    if (field.transform.name !== 'void') throw invalid(`there is a partition field "${name}" already`)
    return { ...field, name: `${name}_${field.fieldId}` }
  })
}

/** v1 numbers fields by their place, so a removed one stays there and is always null. */
function withRemoved(
  metadata: TableMetadata,
  fields: readonly PartitionField[],
  removed: PartitionField,
): readonly PartitionField[] {
  if (metadata.formatVersion > 1) return fields.filter((field) => field !== removed)
  return fields.map((field) => (field === removed ? { ...field, transform: { name: 'void' } } : field))
}

function withRenamed(
  fields: readonly PartitionField[],
  renamed: PartitionField,
  to: string,
): readonly PartitionField[] {
  return freeName(fields, to).map((field) => (field.fieldId === renamed.fieldId ? { ...field, name: to } : field))
}

function named(fields: readonly PartitionField[], name: string): PartitionField {
  const field = fields.find((f) => f.name === name)
  if (field === undefined) throw invalid(`there is no partition field "${name}"`)
  return field
}

function sameSource(field: PartitionField, sourceId: number, transform: Transform): boolean {
  return field.sourceId === sourceId && transformText(field.transform) === transformText(transform)
}

function invalid(message: string): IcebergError {
  return new IcebergError('schema_change_invalid', `The partition spec cannot be changed: ${message}`)
}
