import type { Schema } from './schema.ts'
import type { Field, Type } from './type.ts'

/** The schema with one field, element, key or value replaced by what `change` makes of it. */
export function replaceField(schema: Schema, fieldId: number, change: (field: Field) => Field): Schema {
  const visitFields = (fields: readonly Field[]): Field[] =>
    fields.map((field) => (field.id === fieldId ? change(field) : { ...field, type: visitType(field.type) }))
  const visitType = (type: Type): Type => {
    switch (type.type) {
      case 'struct':
        return { ...type, fields: visitFields(type.fields) }
      case 'list': {
        const [element] = visitFields([
          { id: type.elementId, name: 'element', required: type.elementRequired, type: type.element },
        ])
        return element === undefined ? type : { ...type, element: element.type, elementRequired: element.required }
      }
      case 'map': {
        const [key, value] = visitFields([
          { id: type.keyId, name: 'key', required: true, type: type.key },
          { id: type.valueId, name: 'value', required: type.valueRequired, type: type.value },
        ])
        if (key === undefined || value === undefined) return type
        return { ...type, key: key.type, value: value.type, valueRequired: value.required }
      }
      default:
        return type
    }
  }
  return { ...schema, fields: visitFields(schema.fields) }
}

/** The schema with the fields of one struct replaced; `structId` undefined is the top. */
export function replaceChildren(
  schema: Schema,
  structId: number | undefined,
  change: (fields: readonly Field[]) => readonly Field[],
): Schema {
  if (structId === undefined) return { ...schema, fields: change(schema.fields) }
  return replaceField(schema, structId, (field) => {
    if (field.type.type !== 'struct') return field
    return { ...field, type: { ...field.type, fields: change(field.type.fields) } }
  })
}
