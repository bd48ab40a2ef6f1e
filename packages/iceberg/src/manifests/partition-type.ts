import type { PartitionSpec } from '../metadata/partition-spec.ts'
import { fieldsById, type Schema } from '../metadata/schema.ts'
import type { PrimitiveType } from '../metadata/type.ts'
import { transformedType } from '../values/transform.ts'

/** A field of the partition tuple. */
export interface PartitionTypeField {
  readonly fieldId: number
  readonly name: string
  readonly type: PrimitiveType
}

/**
 * The types of a spec's partition values. A field whose source column is gone has the type `unknown`: give the schema
 * the spec was made for, or the schemas of the table, newest first, to find it.
 */
export function partitionType(spec: PartitionSpec, schemas: Schema | readonly Schema[]): PartitionTypeField[] {
  const indexes = ('fields' in schemas ? [schemas] : schemas).map(fieldsById)
  return spec.fields.map((field) => {
    const source = indexes.map((index) => index.get(field.sourceId)).find((found) => found !== undefined)
    const type = source === undefined ? undefined : transformedType(field.transform, source.type)
    return { fieldId: field.fieldId, name: field.name, type: type ?? { type: 'unknown' } }
  })
}
