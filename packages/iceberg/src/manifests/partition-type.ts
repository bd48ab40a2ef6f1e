import type { PartitionSpec } from '../schema/partition-spec.ts'
import { fieldsById, type Schema } from '../schema/schema.ts'
import { partitionSpecOf, schemaOf, type TableMetadata } from '../metadata/table-metadata.ts'
import type { PrimitiveType, Type } from '../schema/type.ts'
import { transformedType } from '../values/transform.ts'

/** A field of the partition tuple. */
export interface PartitionTypeField {
  readonly fieldId: number
  readonly name: string
  readonly type: PrimitiveType
}

/**
 * The types of a spec's partition values. A field whose source column is gone has the type `unknown`: give the schema
 * the spec was made for, or the schemas of the table, newest first, to find it. Schemas are indexed only until all
 * sources are found: a table may have hundreds, and nearly always the first has them all.
 */
export function partitionType(spec: PartitionSpec, schemas: Schema | readonly Schema[]): PartitionTypeField[] {
  const sources = new Map<number, Type>()
  const wanted = new Set(spec.fields.map((field) => field.sourceId))
  for (const schema of 'fields' in schemas ? [schemas] : schemas) {
    if (sources.size === wanted.size) break
    const fields = fieldsById(schema)
    for (const id of wanted) {
      const found = fields.get(id)
      if (found !== undefined && !sources.has(id)) sources.set(id, found.type)
    }
  }
  return spec.fields.map((field) => {
    const source = sources.get(field.sourceId)
    const type = source === undefined ? undefined : transformedType(field.transform, source)
    return { fieldId: field.fieldId, name: field.name, type: type ?? { type: 'unknown' } }
  })
}

// Metadata is never changed in place, so what was found for one is true as long as it is in use.
const known = new WeakMap<TableMetadata, Map<number, readonly PartitionTypeField[]>>()

/** The same for a spec of a table, found once: also where the current schema has lost the source columns. */
export function partitionTypesOf(metadata: TableMetadata, specId: number): readonly PartitionTypeField[] {
  const bySpec = known.get(metadata) ?? new Map<number, readonly PartitionTypeField[]>()
  known.set(metadata, bySpec)
  const found = bySpec.get(specId)
  if (found !== undefined) return found
  const newestFirst = [schemaOf(metadata), ...metadata.schemas.toReversed()]
  const types = partitionType(partitionSpecOf(metadata, specId), newestFirst)
  bySpec.set(specId, types)
  return types
}
