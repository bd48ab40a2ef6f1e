import { stringifyJson } from '../json/json.ts'
import { transformedType } from '../values/transform.ts'
import { type Draft, updateInvalid } from './draft.ts'
import { type PartitionField, type PartitionSpec, transformText } from '../schema/partition-spec.ts'
import { fieldsById, highestFieldId, type Schema, type SchemaField } from '../schema/schema.ts'
import { schemaToJson } from '../schema/schema-json.ts'
import type { SortOrder } from '../schema/sort-order.ts'
import { type FormatVersion, partitionSpecOf, schemaOf, type TableMetadata } from './table-metadata.ts'
import { type Type, typeName } from '../schema/type.ts'

const typesOfVersion3 = new Set<Type['type']>([
  'timestamp_ns',
  'timestamptz_ns',
  'variant',
  'unknown',
  'geometry',
  'geography',
])

export function addSchema(draft: Draft, schema: Schema): void {
  const problem = schemaVersionProblem(schema, draft.next.formatVersion)
  if (problem !== undefined) throw updateInvalid(draft, problem)
  draft.next.lastColumnId = Math.max(draft.next.lastColumnId, highestFieldId(schema))
  const same = draft.next.schemas.find((s) => sameSchema(s, schema))
  const schemaId = same?.schemaId ?? nextId(draft.next.schemas.map((s) => s.schemaId))
  if (same === undefined) draft.next.schemas = [...draft.next.schemas, { ...schema, schemaId }]
  draft.lastAddedSchemaId = schemaId
}

/** What a schema uses that the format version does not have yet, or undefined. */
export function schemaVersionProblem(schema: Schema, version: FormatVersion): string | undefined {
  if (version >= 3) return undefined
  for (const field of fieldsById(schema).values()) {
    const name = field.path.join('.')
    if (typesOfVersion3.has(field.type.type)) {
      return `column ${name} of type ${typeName(field.type)} needs format version 3, and the table has ${version}`
    }
    if (field.initialDefault !== undefined) {
      return `column ${name} has a default, which needs format version 3, and the table has ${version}`
    }
  }
  return undefined
}

function sameSchema(a: Schema, b: Schema): boolean {
  const text = (schema: Schema): string =>
    stringifyJson(
      schemaToJson({
        ...schema,
        schemaId: 0,
        identifierFieldIds: schema.identifierFieldIds.toSorted((x, y) => x - y),
      }),
    )
  return text(a) === text(b)
}

export function setCurrentSchema(draft: Draft, schemaId: number): void {
  const id = schemaId === -1 ? draft.lastAddedSchemaId : schemaId
  if (id === undefined) throw updateInvalid(draft, 'the last added schema cannot be set: none was added')
  if (!draft.next.schemas.some((s) => s.schemaId === id)) {
    throw updateInvalid(draft, `schema ${id} cannot be made the current one: there is no such schema`)
  }
  draft.next.currentSchemaId = id
}

export function removeSchemas(draft: Draft, schemaIds: readonly number[]): void {
  if (schemaIds.includes(draft.next.currentSchemaId)) throw updateInvalid(draft, 'the current schema cannot be removed')
  draft.next.schemas = draft.next.schemas.filter((s) => !schemaIds.includes(s.schemaId))
}

export function addSpec(draft: Draft, spec: PartitionSpec): void {
  const same = draft.next.partitionSpecs.find((s) => sameSpec(s, spec))
  if (same !== undefined) {
    draft.lastAddedSpecId = same.specId
    return
  }
  checkSpec(draft, spec)
  if (draft.next.formatVersion === 1 && spec.fields.some((field, index) => field.fieldId !== 1000 + index)) {
    throw updateInvalid(draft, 'a partition spec of format version 1 must number its fields 1000, 1001, …')
  }
  const specId = nextId(draft.next.partitionSpecs.map((s) => s.specId))
  draft.next.partitionSpecs = [...draft.next.partitionSpecs, { ...spec, specId }]
  draft.next.lastPartitionId = Math.max(draft.next.lastPartitionId, ...spec.fields.map((field) => field.fieldId))
  draft.lastAddedSpecId = specId
}

function sameSpec(a: PartitionSpec, b: PartitionSpec): boolean {
  const sameField = (x: PartitionField, y: PartitionField | undefined): boolean =>
    x.sourceId === y?.sourceId && x.name === y.name && transformText(x.transform) === transformText(y.transform)
  return a.fields.length === b.fields.length && a.fields.every((field, index) => sameField(field, b.fields[index]))
}

function checkSpec(draft: Draft, spec: PartitionSpec): void {
  const fields = fieldsById(schemaOf(draft.next))
  const names = new Set<string>()
  for (const field of spec.fields) {
    if (names.has(field.name)) throw updateInvalid(draft, `two partition fields have the name "${field.name}"`)
    names.add(field.name)
    if (field.transform.name === 'void') continue
    const source = fields.get(field.sourceId)
    if (source === undefined) {
      throw updateInvalid(
        draft,
        `the partition field "${field.name}" needs column ${field.sourceId}, which is not there`,
      )
    }
    if (transformedType(field.transform, source.type) === undefined || !insideStructs(source, fields)) {
      const column = `${source.path.join('.')} of type ${typeName(source.type)}`
      throw updateInvalid(draft, `${transformText(field.transform)} cannot partition by column ${column}`)
    }
  }
}

function insideStructs(field: SchemaField, fields: ReadonlyMap<number, SchemaField>): boolean {
  if (field.parentId === undefined) return true
  const parent = fields.get(field.parentId)
  return parent?.type.type === 'struct' && insideStructs(parent, fields)
}

export function setDefaultSpec(draft: Draft, specId: number): void {
  const id = specId === -1 ? draft.lastAddedSpecId : specId
  if (id === undefined) throw updateInvalid(draft, 'the last added partition spec cannot be set: none was added')
  if (!draft.next.partitionSpecs.some((s) => s.specId === id)) {
    throw updateInvalid(draft, `partition spec ${id} cannot be made the default: there is no such spec`)
  }
  draft.next.defaultSpecId = id
}

export function removeSpecs(draft: Draft, specIds: readonly number[]): void {
  if (specIds.includes(draft.next.defaultSpecId)) {
    throw updateInvalid(draft, 'the default partition spec cannot be removed')
  }
  draft.next.partitionSpecs = draft.next.partitionSpecs.filter((s) => !specIds.includes(s.specId))
}

export function addSortOrder(draft: Draft, order: SortOrder): void {
  const fields = fieldsById(schemaOf(draft.next))
  for (const field of order.fields) checkSortSource(draft, field, fields)
  const text = (o: SortOrder): string =>
    o.fields.map((f) => `${transformText(f.transform)} ${f.sourceId} ${f.direction} ${f.nullOrder}`).join()
  const same = draft.next.sortOrders.find((o) => text(o) === text(order))
  const ids = draft.next.sortOrders.map((o) => o.orderId)
  const orderId = same?.orderId ?? (order.fields.length === 0 ? 0 : nextId([0, ...ids]))
  if (same === undefined) draft.next.sortOrders = [...draft.next.sortOrders, { ...order, orderId }]
  draft.lastAddedOrderId = orderId
}

function checkSortSource(
  draft: Draft,
  field: SortOrder['fields'][number],
  fields: ReadonlyMap<number, SchemaField>,
): void {
  const source = fields.get(field.sourceId)
  if (source === undefined || transformedType(field.transform, source.type) === undefined) {
    throw updateInvalid(draft, `${transformText(field.transform)} of column ${field.sourceId} cannot be sorted by`)
  }
}

export function setDefaultSortOrder(draft: Draft, sortOrderId: number): void {
  const id = sortOrderId === -1 ? draft.lastAddedOrderId : sortOrderId
  if (id === undefined) throw updateInvalid(draft, 'the last added sort order cannot be set: none was added')
  if (id !== 0 && !draft.next.sortOrders.some((s) => s.orderId === id)) {
    throw updateInvalid(draft, `sort order ${id} cannot be made the default: there is no such order`)
  }
  draft.next.defaultSortOrderId = id
}

/** After all updates: what new data is partitioned and sorted by must still be in the current schema. */
export function checkDefaults(draft: Draft): void {
  checkSpec(draft, partitionSpecOf(draft.next))
  const fields = fieldsById(schemaOf(draft.next))
  const order = defaultSortOrder(draft.next)
  for (const field of order?.fields ?? []) checkSortSource(draft, field, fields)
}

function defaultSortOrder(metadata: TableMetadata): SortOrder | undefined {
  return metadata.sortOrders.find((order) => order.orderId === metadata.defaultSortOrderId)
}

function nextId(ids: readonly number[]): number {
  return Math.max(-1, ...ids) + 1
}
