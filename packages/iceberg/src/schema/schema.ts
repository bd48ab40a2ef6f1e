import type { JsonObject } from '../json/json.ts'
import type { Field, Type } from './type.ts'

export interface Schema {
  /** 0 for a schema of an old v1 table that had none. */
  readonly schemaId: number
  readonly identifierFieldIds: readonly number[]
  readonly fields: readonly Field[]
  readonly unknownKeys?: JsonObject
}

/** A field anywhere in a schema, elements, keys and values of lists and maps included. */
export interface SchemaField extends Field {
  /** Names from the top, such as ["tags", "element", "name"]. A name may itself hold dots. */
  readonly path: readonly string[]
  /** The struct, list or map it is in; undefined at the top. */
  readonly parentId: number | undefined
}

/** Every field of a schema by its id. */
export function fieldsById(schema: { readonly fields: readonly Field[] }): Map<number, SchemaField> {
  const byId = new Map<number, SchemaField>()
  for (const field of schema.fields) collect(field, [], undefined, byId)
  return byId
}

function collect(
  field: Field,
  parentPath: readonly string[],
  parentId: number | undefined,
  byId: Map<number, SchemaField>,
): void {
  const path = [...parentPath, field.name]
  byId.set(field.id, { ...field, path, parentId })
  for (const child of childrenOf(field.type)) collect(child, path, field.id, byId)
}

/** The fields directly inside a type: members of a struct, the element of a list, key and value of a map. */
export function childrenOf(type: Type): readonly Field[] {
  switch (type.type) {
    case 'struct':
      return type.fields
    case 'list':
      return [{ id: type.elementId, name: 'element', required: type.elementRequired, type: type.element }]
    case 'map':
      return [
        { id: type.keyId, name: 'key', required: true, type: type.key },
        { id: type.valueId, name: 'value', required: type.valueRequired, type: type.value },
      ]
    default:
      return []
  }
}

/** The highest field id in a schema, 0 when it is empty. */
export function highestFieldId(schema: { readonly fields: readonly Field[] }): number {
  return Math.max(0, ...fieldsById(schema).keys())
}

/** The field of this dotted name ("location.lat", "tags.element"), or undefined. */
export function findField(schema: { readonly fields: readonly Field[] }, name: string): SchemaField | undefined {
  for (const field of fieldsById(schema).values()) if (field.path.join('.') === name) return field
  return undefined
}
