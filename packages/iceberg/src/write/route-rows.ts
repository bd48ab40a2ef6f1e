import { IcebergError } from '../errors.ts'
import type { PartitionValues } from '../manifests/content-file.ts'
import { transformText, type PartitionSpec } from '../schema/partition-spec.ts'
import { fieldsById, type SchemaField } from '../schema/schema.ts'
import { isNested, type Field, type PrimitiveType } from '../schema/type.ts'
import { plainValue, type Row } from '../parquet/write-values.ts'
import { valueFromJson } from '../values/json-value.ts'
import { applyTransform } from '../values/transform.ts'
import type { Value } from '../values/value.ts'
import { partitionKey } from '../manifests/partition-key.ts'

/** Tells the partition of rows: its number, in the order that partitions are first seen. */
export function router(
  spec: PartitionSpec,
  schema: { readonly fields: readonly Field[] },
): { route: (row: Row, rowNumber: number) => number; partitions: PartitionValues[] } {
  const values = spec.fields.map((field) => sourceOf(spec, schema, field.sourceId, transformText(field.transform)))
  const numbers = new Map<string, number>()
  const partitions: PartitionValues[] = []
  const route = (row: Row, rowNumber: number): number => {
    const partition = spec.fields.map(({ transform }, index) => {
      const source = values[index]
      if (source === undefined || transform.name === 'void') return null
      const value = source.read(row)
      try {
        return applyTransform(transform, source.type, value)
      } catch (error) {
        throw new IcebergError('value_invalid', `Row ${rowNumber} has no partition: ${(error as Error).message}`, {
          cause: error,
        })
      }
    })
    const key = partitionKey(spec.specId, partition)
    const known = numbers.get(key)
    if (known !== undefined) return known
    numbers.set(key, partitions.length)
    return partitions.push(partition) - 1
  }
  return { route, partitions }
}

function sourceOf(
  spec: PartitionSpec,
  schema: { readonly fields: readonly Field[] },
  sourceId: number,
  transform: string,
): ColumnReader | undefined {
  if (transform === 'void') return undefined
  const reader = columnReader(schema, sourceId)
  if (reader !== undefined) return reader
  throw new IcebergError(
    'value_invalid',
    `Partition spec ${spec.specId} needs column ${sourceId}, which these rows do not have`,
  )
}

export interface ColumnReader {
  readonly type: PrimitiveType
  readonly read: (row: Row) => Value | null
}

/** Reads one value of rows as it will be written, also from inside of structs; undefined when there is no such column. */
export function columnReader(
  schema: { readonly fields: readonly Field[] },
  sourceId: number,
): ColumnReader | undefined {
  const fields = fieldsById(schema)
  const field = fields.get(sourceId)
  if (field === undefined || isNested(field.type)) return undefined
  const { type } = field
  const outside: SchemaField[] = []
  for (let id = field.parentId; id !== undefined; id = outside[0]?.parentId) {
    const parent = fields.get(id)
    if (parent?.type.type !== 'struct') return undefined
    outside.unshift(parent)
  }
  const absent = defaultOf(field)
  return {
    type,
    read(row) {
      let at: unknown = row
      for (const struct of outside) {
        at = memberOf(at, struct) ?? null
        if (at === null) return null
      }
      const value = (at as Row)[field.name]
      if (value === undefined) return absent as Value | null
      return value === null ? null : (plainValue(type, value) as Value)
    },
  }
}

function memberOf(row: unknown, field: SchemaField): unknown {
  const value = (row as Row)[field.name]
  return value === undefined ? defaultOf(field) : value
}

function defaultOf(field: Field): unknown {
  return field.writeDefault === undefined ? null : valueFromJson(field.type, field.writeDefault)
}
