import { IcebergError } from '../errors.ts'
import { type Json, type JsonObject, parseJson, stringifyJson } from '../json/json.ts'
import { compact, ObjectReader } from '../json/object-reader.ts'
import { childrenOf, type Schema } from './schema.ts'
import type { Field } from './type.ts'

/** Names under which a field is found in data files that carry no field ids (`schema.name-mapping.default`). */
export interface MappedField {
  /** Undefined: the names are known, and belong to no field. */
  readonly fieldId?: number
  readonly names: readonly string[]
  readonly fields: readonly MappedField[]
}

export function parseNameMapping(text: string): MappedField[] {
  const json = parseJson(text, 'the name mapping')
  if (!Array.isArray(json)) throw new IcebergError('metadata_invalid', 'The name mapping is not an array')
  return json.map((item, index) => mappedField(item, `name mapping[${index}]`))
}

function mappedField(json: Json, what: string): MappedField {
  const r = new ObjectReader(json, what)
  const fieldId = r.optionalInt('field-id')
  const names = r.optionalArray('names', (name, where) => {
    if (typeof name !== 'string') throw new IcebergError('metadata_invalid', `${where} is not a name`)
    return name
  })
  return {
    ...(fieldId === undefined ? {} : { fieldId }),
    names: names ?? [],
    fields: r.optionalArray('fields', mappedField) ?? [],
  }
}

export function serializeNameMapping(mapping: readonly MappedField[]): string {
  const toJson = (field: MappedField): JsonObject =>
    compact({
      'field-id': field.fieldId,
      names: field.names,
      fields: field.fields.length === 0 ? undefined : field.fields.map(toJson),
    })
  return stringifyJson(mapping.map(toJson))
}

/** The mapping that gives every field of a schema its present name. */
export function nameMappingOf(schema: Schema): MappedField[] {
  const mapped = (field: Field): MappedField => ({
    fieldId: field.id,
    names: [field.name],
    fields: childrenOf(field.type).map(mapped),
  })
  return schema.fields.map(mapped)
}

/** The field a column of a file without ids stands for; `path` holds the column's names from the top. */
export function mappedFieldOf(mapping: readonly MappedField[], path: readonly string[]): MappedField | undefined {
  let level = mapping
  let found: MappedField | undefined
  for (const name of path) {
    found = level.find((field) => field.names.includes(name))
    if (found === undefined) return undefined
    level = found.fields
  }
  return found
}
