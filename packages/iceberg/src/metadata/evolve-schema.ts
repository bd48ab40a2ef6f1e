import { IcebergError } from '../errors.ts'
import type { Json } from '../json/json.ts'
import { valueFromJson } from '../values/json-value.ts'
import { freshType } from './create-table-metadata.ts'
import type { Transform } from '../schema/partition-spec.ts'
import { fieldsById, highestFieldId, type Schema, type SchemaField } from '../schema/schema.ts'
import { replaceChildren, replaceField } from '../schema/schema-tree.ts'
import { schemaOf, type TableMetadata } from './table-metadata.ts'
import { type Field, isNested, type PrimitiveType, type StructType, type Type, typeName } from '../schema/type.ts'
import type { MetadataUpdate } from './update.ts'

/** A column by its dotted name, or by its names from the top where a name holds dots itself. */
export type ColumnName = string | readonly string[]

/** One step of schema evolution. Steps are applied in order, each on the result of the one before. */
export type SchemaChange =
  | {
      readonly change: 'add'
      /** The struct it goes into, or a list or map of structs; default: the top. */
      readonly parent?: ColumnName
      readonly name: string
      readonly type: Type
      readonly doc?: string
      /** A required column needs a default, or `allowIncompatible`. */
      readonly required?: boolean
      /** v3: what old rows have, and new ones that are written without the column. A JSON single value. */
      readonly default?: Json
      readonly allowIncompatible?: boolean
    }
  | { readonly change: 'drop'; readonly column: ColumnName }
  | { readonly change: 'rename'; readonly column: ColumnName; readonly to: string }
  | { readonly change: 'widen'; readonly column: ColumnName; readonly type: PrimitiveType }
  | { readonly change: 'make-optional'; readonly column: ColumnName }
  | { readonly change: 'make-required'; readonly column: ColumnName; readonly allowIncompatible: true }
  | { readonly change: 'set-doc'; readonly column: ColumnName; readonly doc: string | undefined }
  /** v3: what rows written from now on without the column have. */
  | { readonly change: 'set-write-default'; readonly column: ColumnName; readonly default: Json }
  | {
      readonly change: 'move'
      readonly column: ColumnName
      readonly to: 'first' | { before: string } | { after: string }
    }
  | { readonly change: 'set-identifiers'; readonly columns: readonly ColumnName[] }

/** The updates that bring the table to the changed schema. */
export function schemaUpdates(metadata: TableMetadata, changes: readonly SchemaChange[]): MetadataUpdate[] {
  const schema = evolveSchema(schemaOf(metadata), changes, metadata)
  assertSamePartitions(metadata, schema)
  return [
    { action: 'add-schema', schema },
    { action: 'set-current-schema', schemaId: -1 },
  ]
}

// A day and the midnight it becomes are two values, in two buckets; their year, month and day are the same.
const keepsDates = new Set<Transform['name']>(['year', 'month', 'day', 'void'])

/** Refuses to widen a date whose partitions would have other values then: the files there are keep the old ones. */
function assertSamePartitions(metadata: TableMetadata, schema: Schema): void {
  const [before, after] = [fieldsById(schemaOf(metadata)), fieldsById(schema)]
  for (const { name, sourceId, transform } of metadata.partitionSpecs.flatMap((spec) => spec.fields)) {
    const source = before.get(sourceId)
    const isWidened = source?.type.type === 'date' && (after.get(sourceId)?.type.type ?? 'date') !== 'date'
    if (isWidened && !keepsDates.has(transform.name)) {
      throw invalid(
        `"${source.path.join('.')}" cannot be widened: the partition field "${name}" would have other values`,
      )
    }
  }
}

interface Evolution {
  readonly formatVersion: number
  readonly nextId: () => number
}

/** The schema after the changes. New fields get ids above the table's last. */
export function evolveSchema(
  schema: Schema,
  changes: readonly SchemaChange[],
  table: Pick<TableMetadata, 'formatVersion' | 'lastColumnId'>,
): Schema {
  let lastId = Math.max(table.lastColumnId, highestFieldId(schema))
  const evolution: Evolution = { formatVersion: table.formatVersion, nextId: () => (lastId += 1) }
  return changes.reduce((current, change) => applyChange(current, change, evolution), schema)
}

function applyChange(schema: Schema, change: SchemaChange, evolution: Evolution): Schema {
  switch (change.change) {
    case 'add':
      return addColumn(schema, change, evolution)
    case 'drop':
      return dropColumn(schema, change.column)
    case 'rename':
      return renameColumn(schema, change.column, change.to)
    case 'widen':
      return changeField(schema, change.column, (field) => ({
        ...field,
        type: widened(field, change.type, evolution.formatVersion),
      }))
    case 'make-optional':
      return makeOptional(schema, change.column)
    case 'make-required':
      return changeField(schema, change.column, (field) => ({ ...field, required: true }))
    case 'set-doc':
      return changeField(schema, change.column, ({ doc: _, ...field }) =>
        change.doc === undefined ? field : { ...field, doc: change.doc },
      )
    case 'set-write-default':
      return changeField(schema, change.column, (field) => {
        checkDefault(field.name, field.type, change.default, evolution.formatVersion)
        return { ...field, writeDefault: change.default }
      })
    case 'move':
      return moveColumn(schema, change.column, change.to)
    case 'set-identifiers':
      return setIdentifiers(schema, change.columns)
  }
}

function find(schema: Schema, column: ColumnName): SchemaField {
  const text = typeof column === 'string' ? column : column.join('.')
  for (const field of fieldsById(schema).values()) {
    const same =
      typeof column === 'string'
        ? field.path.join('.') === column
        : field.path.length === column.length && field.path.every((name, index) => name === column[index])
    if (same) return field
  }
  throw invalid(`there is no column "${text}"`)
}

function changeField(schema: Schema, column: ColumnName, change: (field: Field) => Field): Schema {
  const found = find(schema, column)
  if (isInMapKey(schema, found)) throw invalid(`"${found.path.join('.')}" is in the key of a map, which cannot change`)
  return replaceField(schema, found.id, change)
}

function isInMapKey(schema: Schema, field: SchemaField): boolean {
  const fields = fieldsById(schema)
  for (let at: SchemaField | undefined = field; at?.parentId !== undefined; at = fields.get(at.parentId)) {
    const parent = fields.get(at.parentId)
    if (parent?.type.type === 'map' && parent.type.keyId === at.id) return true
  }
  return false
}

function addColumn(schema: Schema, change: SchemaChange & { change: 'add' }, evolution: Evolution): Schema {
  const parent = change.parent === undefined ? undefined : structIn(find(schema, change.parent))
  if (parent !== undefined && isInMapKey(schema, { ...find(schema, change.parent ?? ''), ...parent })) {
    throw invalid('a field cannot be added to the key of a map')
  }
  const siblings = parent === undefined ? schema.fields : parent.struct.fields
  if (siblings.some((field) => field.name === change.name)) throw invalid(`there is a column "${change.name}" already`)
  const required = change.required ?? false
  if (required && change.default === undefined && change.allowIncompatible !== true) {
    throw invalid(`the required column "${change.name}" needs a default: old rows have no value for it`)
  }
  if (change.default !== undefined) checkDefault(change.name, change.type, change.default, evolution.formatVersion)
  const id = evolution.nextId()
  const field: Field = {
    id,
    name: change.name,
    required,
    type: freshType(change.type, evolution.nextId),
    ...(change.doc === undefined ? {} : { doc: change.doc }),
    ...(change.default === undefined ? {} : { initialDefault: change.default, writeDefault: change.default }),
  }
  return replaceChildren(schema, parent?.id, (fields) => [...fields, field])
}

/** The struct that fields are added to when a column is named: itself, the element of a list, the value of a map. */
function structIn(field: SchemaField): { id: number; struct: StructType } {
  const { type } = field
  if (type.type === 'struct') return { id: field.id, struct: type }
  if (type.type === 'list' && type.element.type === 'struct') return { id: type.elementId, struct: type.element }
  if (type.type === 'map' && type.value.type === 'struct') return { id: type.valueId, struct: type.value }
  throw invalid(`"${field.path.join('.')}" has no fields: it is ${typeName(type)}`)
}

function checkDefault(name: string, type: Type, value: Json, formatVersion: number): void {
  if (formatVersion < 3) throw invalid(`the default of column "${name}" needs format version 3`)
  if (isNested(type) || value === null)
    throw invalid(`column "${name}" of type ${typeName(type)} cannot have this default`)
  valueFromJson(type, value)
}

function dropColumn(schema: Schema, column: ColumnName): Schema {
  const dropped = find(schema, column)
  const inside = new Set(fieldsById({ fields: [dropped] }).keys())
  if (schema.identifierFieldIds.some((id) => inside.has(id))) {
    throw invalid(`"${dropped.path.join('.')}" is an identifier field, or holds one`)
  }
  const parent = dropped.parentId === undefined ? undefined : fieldsById(schema).get(dropped.parentId)
  if (parent !== undefined && parent.type.type !== 'struct') {
    throw invalid(`the element, key or value of "${parent.path.join('.')}" cannot be dropped`)
  }
  if (isInMapKey(schema, dropped)) throw invalid('a field cannot be dropped from the key of a map')
  return replaceChildren(schema, dropped.parentId, (fields) => {
    if (fields.length === 1) throw invalid(`"${dropped.path.join('.')}" is the last field; it cannot be dropped`)
    return fields.filter((field) => field.id !== dropped.id)
  })
}

function renameColumn(schema: Schema, column: ColumnName, to: string): Schema {
  const found = find(schema, column)
  return replaceChildren(schema, structParent(schema, found), (fields) => {
    if (fields.some((field) => field.name === to && field.id !== found.id)) {
      throw invalid(`there is a column "${to}" already`)
    }
    return fields.map((field) => (field.id === found.id ? { ...field, name: to } : field))
  })
}

function structParent(schema: Schema, field: SchemaField): number | undefined {
  const parent = field.parentId === undefined ? undefined : fieldsById(schema).get(field.parentId)
  if (parent !== undefined && parent.type.type !== 'struct') {
    throw invalid(`"${field.path.join('.')}" is the part of a list or map, not a field of a struct`)
  }
  return field.parentId
}

function widened(field: Field, to: PrimitiveType, formatVersion: number): PrimitiveType {
  const from = field.type
  if (typeName(from) === typeName(to) || canWiden(from, to, formatVersion)) return to
  throw invalid(`column "${field.name}" of type ${typeName(from)} cannot become ${typeName(to)}`)
}

/** Whether values of one type may be read as the other (int to long, float to double, a decimal of more digits). */
export function canWiden(from: Type, to: PrimitiveType, formatVersion: number): boolean {
  if (from.type === 'int') return to.type === 'long'
  if (from.type === 'float') return to.type === 'double'
  if (from.type === 'decimal') {
    return to.type === 'decimal' && to.scale === from.scale && to.precision >= from.precision
  }
  if (formatVersion < 3) return false
  return from.type === 'unknown' || (from.type === 'date' && (to.type === 'timestamp' || to.type === 'timestamp_ns'))
}

function makeOptional(schema: Schema, column: ColumnName): Schema {
  const found = find(schema, column)
  if (schema.identifierFieldIds.includes(found.id)) {
    throw invalid(`"${found.path.join('.')}" is an identifier field and must stay required`)
  }
  return changeField(schema, column, (field) => ({ ...field, required: false }))
}

function moveColumn(schema: Schema, column: ColumnName, to: (SchemaChange & { change: 'move' })['to']): Schema {
  const found = find(schema, column)
  return replaceChildren(schema, structParent(schema, found), (fields) => {
    const others = fields.filter((field) => field.id !== found.id)
    const moved = fields.filter((field) => field.id === found.id)
    if (to === 'first') return [...moved, ...others]
    const neighbour = 'before' in to ? to.before : to.after
    const index = others.findIndex((field) => field.name === neighbour)
    if (index < 0) throw invalid(`"${neighbour}" is not beside "${found.path.join('.')}"`)
    return others.toSpliced('before' in to ? index : index + 1, 0, ...moved)
  })
}

function setIdentifiers(schema: Schema, columns: readonly ColumnName[]): Schema {
  const fields = fieldsById(schema)
  const found = columns.map((column) => find(schema, column))
  for (const field of found) {
    const name = field.path.join('.')
    if (isNested(field.type) || field.type.type === 'float' || field.type.type === 'double') {
      throw invalid(`"${name}" of type ${typeName(field.type)} cannot be an identifier field`)
    }
    for (let at: SchemaField | undefined = field; at !== undefined; at = parentOf(at, fields)) {
      if (!at.required || (at !== field && at.type.type !== 'struct')) {
        throw invalid(`the identifier field "${name}" must be required, and so must every struct around it`)
      }
    }
  }
  return { ...schema, identifierFieldIds: found.map((field) => field.id) }
}

function parentOf(field: SchemaField, fields: ReadonlyMap<number, SchemaField>): SchemaField | undefined {
  return field.parentId === undefined ? undefined : fields.get(field.parentId)
}

function invalid(message: string): IcebergError {
  return new IcebergError('schema_change_invalid', `The schema cannot be changed: ${message}`)
}
