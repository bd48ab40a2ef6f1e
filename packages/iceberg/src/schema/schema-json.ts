import { IcebergError } from '../errors.ts'
import type { Json, JsonObject } from '../json/json.ts'
import { compact, ObjectReader } from '../json/object-reader.ts'
import type { Schema } from './schema.ts'
import { typeFromJson, typeToJson } from './type-json.ts'

export function schemaFromJson(json: Json | undefined, what = 'schema'): Schema {
  const r = new ObjectReader(json, what)
  const struct = typeFromJson({ type: r.string('type'), fields: r.raw('fields') ?? null }, what)
  if (struct.type !== 'struct') throw new IcebergError('metadata_invalid', `${what} is not a struct`)
  return {
    schemaId: r.optionalInt('schema-id') ?? 0,
    identifierFieldIds: r.optionalArray('identifier-field-ids', fieldId) ?? [],
    fields: struct.fields,
    ...r.unknown(),
  }
}

function fieldId(json: Json, what: string): number {
  if (typeof json !== 'number') throw new IcebergError('metadata_invalid', `${what} is not a field id`)
  return json
}

export function schemaToJson(schema: Schema): JsonObject {
  return compact({
    type: 'struct',
    'schema-id': schema.schemaId,
    'identifier-field-ids': schema.identifierFieldIds.length === 0 ? undefined : schema.identifierFieldIds,
    fields: (typeToJson({ type: 'struct', fields: schema.fields }) as JsonObject)['fields'],
    ...schema.unknownKeys,
  })
}
