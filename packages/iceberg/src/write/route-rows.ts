import { IcebergError } from '../errors.ts'
import type { PartitionValues } from '../manifests/content-file.ts'
import { transformText, type PartitionSpec } from '../metadata/partition-spec.ts'
import { fieldsById } from '../metadata/schema.ts'
import { isNested, type Field, type PrimitiveType } from '../metadata/type.ts'
import { plainValue, type Row } from '../parquet/write-values.ts'
import { valueFromJson } from '../values/json-value.ts'
import { applyTransform } from '../values/transform.ts'
import type { Value } from '../values/value.ts'
import { partitionKey } from '../scan/delete-index.ts'

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
): { type: PrimitiveType; read: (row: Row) => Value | null } | undefined {
  if (transform === 'void') return undefined
  const field = fieldsById(schema).get(sourceId)
  if (field === undefined || isNested(field.type)) {
    throw new IcebergError(
      'value_invalid',
      `Partition spec ${spec.specId} needs column ${sourceId}, which these rows do not have`,
    )
  }
  const { type } = field
  const absent = field.writeDefault === undefined ? null : (valueFromJson(type, field.writeDefault) as Value)
  return {
    type,
    read(row) {
      let at: unknown = row
      for (const name of field.path) at = at === null || at === undefined ? at : (at as Row)[name]
      if (at === undefined) return absent
      return at === null ? null : (plainValue(type, at) as Value)
    },
  }
}
