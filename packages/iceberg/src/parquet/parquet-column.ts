import type { SchemaElement, SchemaTree } from 'hyparquet'
import { IcebergError } from '../errors.ts'
import { mappedFieldOf, type MappedField } from '../schema/name-mapping.ts'
import type { PrimitiveType } from '../schema/type.ts'

/** A column of a Parquet file, at any depth, with the type it amounts to in Iceberg. */
export interface ParquetColumn {
  readonly name: string
  readonly fieldId: number | undefined
  readonly type: ParquetType
}

export type ParquetType =
  | PrimitiveType
  /** Timestamps of old Spark and Impala, of which nothing says whether they have a zone. */
  | { readonly type: 'int96' }
  /** A time that is said to be UTC, as older pyarrow writes every time. DuckDB reads it as a time with a zone. */
  | { readonly type: 'time_utc' }
  /** What has no like in Iceberg. */
  | { readonly type: 'other'; readonly text: string }
  | { readonly type: 'struct'; readonly fields: readonly ParquetColumn[] }
  | { readonly type: 'list'; readonly element: ParquetColumn }
  | { readonly type: 'map'; readonly key: ParquetColumn; readonly value: ParquetColumn }

export function parquetColumn(node: SchemaTree): ParquetColumn {
  const { element } = node
  const column = { name: element.name, fieldId: element.field_id }
  const type = groupOrPrimitive(node)
  // A repeated field outside a list is itself a list, of required elements.
  if (element.repetition_type !== 'REPEATED') return { ...column, type }
  return { ...column, type: { type: 'list', element: { name: 'element', fieldId: undefined, type } } }
}

function groupOrPrimitive(node: SchemaTree): ParquetType {
  const { element, children } = node
  if (element.type !== undefined) return primitive(element)
  const annotation = element.logical_type?.type ?? element.converted_type
  const only = children.length === 1 ? children[0] : undefined
  if (annotation === 'VARIANT') return { type: 'variant' }
  if (annotation === 'LIST' && only?.element.repetition_type === 'REPEATED')
    return { type: 'list', element: listElement(node, only) }
  if ((annotation === 'MAP' || annotation === 'MAP_KEY_VALUE') && only?.children.length === 2) {
    const [key, value] = only.children.map(parquetColumn)
    if (key !== undefined && value !== undefined) return { type: 'map', key, value }
  }
  return { type: 'struct', fields: children.map(parquetColumn) }
}

/** By the rules of Parquet for lists that were written before there were rules. */
function listElement(list: SchemaTree, repeated: SchemaTree): ParquetColumn {
  const only = repeated.children.length === 1 ? repeated.children[0] : undefined
  const { name } = repeated.element
  const isElement = only === undefined || name === 'array' || name === `${list.element.name}_tuple`
  if (!isElement) return parquetColumn(only)
  return { name, fieldId: repeated.element.field_id, type: groupOrPrimitive(repeated) }
}

function primitive(element: SchemaElement): ParquetType {
  const logical = element.logical_type?.type ?? element.converted_type
  if (logical === 'DECIMAL') {
    const { precision, scale = 0 } = element.logical_type?.type === 'DECIMAL' ? element.logical_type : element
    if (precision !== undefined && precision <= 38) return { type: 'decimal', precision, scale }
  }
  const type = byPhysicalType(element, logical)
  return type ?? { type: 'other', text: logical === undefined ? `${element.type}` : `${element.type} ${logical}` }
}

function byPhysicalType(element: SchemaElement, logical: string | undefined): ParquetType | undefined {
  switch (element.type) {
    case 'BOOLEAN':
      return { type: 'boolean' }
    case 'INT32':
      return int32(element, logical)
    case 'INT64':
      return int64(element, logical)
    case 'INT96':
      return { type: 'int96' }
    case 'FLOAT':
      return { type: 'float' }
    case 'DOUBLE':
      return { type: 'double' }
    case 'BYTE_ARRAY':
      if (logical === undefined || logical === 'BSON') return { type: 'binary' }
      return ['STRING', 'UTF8', 'ENUM', 'JSON'].includes(logical) ? { type: 'string' } : undefined
    case 'FIXED_LEN_BYTE_ARRAY':
      if (logical === 'UUID') return { type: 'uuid' }
      return logical === undefined ? { type: 'fixed', length: element.type_length ?? 0 } : undefined
    default:
      return undefined
  }
}

function int32(element: SchemaElement, logical: string | undefined): ParquetType | undefined {
  switch (logical) {
    case undefined:
    case 'INT_8':
    case 'INT_16':
    case 'INT_32':
    case 'UINT_8':
    case 'UINT_16':
      return { type: 'int' }
    case 'INTEGER':
      return isUnsigned(element, 32) ? { type: 'long' } : { type: 'int' }
    case 'UINT_32':
      return { type: 'long' }
    case 'DATE':
      return { type: 'date' }
    case 'TIME':
      return time(element)
    case 'TIME_MILLIS':
      return { type: 'time' }
    default:
      return undefined
  }
}

function int64(element: SchemaElement, logical: string | undefined): ParquetType | undefined {
  const { logical_type: annotation } = element
  switch (logical) {
    case undefined:
    case 'INT_64':
      return { type: 'long' }
    case 'INTEGER':
      return isUnsigned(element, 64) ? undefined : { type: 'long' }
    case 'TIME_MICROS':
      return { type: 'time' }
    case 'TIME':
      return annotation?.type === 'TIME' && annotation.unit === 'NANOS' ? undefined : time(element)
    case 'TIMESTAMP_MILLIS':
    case 'TIMESTAMP_MICROS':
      return { type: 'timestamptz' }
    case 'TIMESTAMP': {
      if (annotation?.type !== 'TIMESTAMP') return undefined
      const zone = annotation.isAdjustedToUTC ? 'timestamptz' : 'timestamp'
      return { type: annotation.unit === 'NANOS' ? `${zone}_ns` : zone }
    }
    default:
      return undefined
  }
}

function time({ logical_type: annotation }: SchemaElement): ParquetType {
  return { type: annotation?.type === 'TIME' && annotation.isAdjustedToUTC ? 'time_utc' : 'time' }
}

function isUnsigned({ logical_type: annotation }: SchemaElement, bits: number): boolean {
  return annotation?.type === 'INTEGER' && !annotation.isSigned && annotation.bitWidth === bits
}

/** Whether the columns carry field ids, anywhere. */
function hasFieldIds(columns: readonly ParquetColumn[]): boolean {
  return columns.some((column) => column.fieldId !== undefined || hasFieldIds(innerColumns(column.type)))
}

function innerColumns(type: ParquetType): readonly ParquetColumn[] {
  if (type.type === 'struct') return type.fields
  if (type.type === 'list') return [type.element]
  return type.type === 'map' ? [type.key, type.value] : []
}

/** The columns with their own field ids or, in a file that has none, with those of the table's name mapping. */
export function withFieldIds(
  columns: readonly ParquetColumn[],
  mapping: readonly MappedField[] | undefined,
  location: string,
): readonly ParquetColumn[] {
  if (hasFieldIds(columns)) return columns
  if (mapping === undefined) {
    throw new IcebergError(
      'scan_unsupported',
      `${location} has no field ids, and the table has no name mapping: set its property schema.name-mapping.default.`,
      { details: { location } },
    )
  }
  return columns.map((column) => mapped(column, mapping, [column.name]))
}

// In a name mapping the parts of lists and maps have the names of the format, whatever the file calls them.
function mapped(column: ParquetColumn, mapping: readonly MappedField[], path: readonly string[]): ParquetColumn {
  const { type } = column
  const inner = (child: ParquetColumn, name: string): ParquetColumn => mapped(child, mapping, [...path, name])
  const fieldId = mappedFieldOf(mapping, path)?.fieldId
  switch (type.type) {
    case 'struct':
      return { ...column, fieldId, type: { ...type, fields: type.fields.map((child) => inner(child, child.name)) } }
    case 'list':
      return { ...column, fieldId, type: { ...type, element: inner(type.element, 'element') } }
    case 'map':
      return {
        ...column,
        fieldId,
        type: { ...type, key: inner(type.key, 'key'), value: inner(type.value, 'value') },
      }
    default:
      return { ...column, fieldId }
  }
}
