import { fieldsById, type Schema } from '../schema/schema.ts'
import type { Field, PrimitiveType } from '../schema/type.ts'
import { columnSql, type FileColumns } from './projection.ts'

/** One field, at the top or inside structs, as deletes and filters look at it. */
export interface FieldPath {
  readonly id: number
  readonly type: PrimitiveType
  /** The column it is in, with nothing else in it, and nothing required: it may be gone or not there yet. */
  readonly column: Field
  /** How many structs it is inside. */
  readonly depth: number
}

/** The field with this id in the first of the schemas that has it. */
export function fieldPath(schemas: readonly Schema[], id: number): FieldPath | undefined {
  for (const schema of schemas) {
    const byId = fieldsById(schema)
    const found = byId.get(id)
    if (found === undefined) continue
    let column: Field = { ...found, required: false }
    let depth = 0
    for (let at = found.parentId; at !== undefined; depth += 1) {
      const parent = byId.get(at)
      if (parent?.type.type !== 'struct') return undefined
      column = { ...parent, required: false, type: { type: 'struct', fields: [column] } }
      at = parent.parentId
    }
    return { id, type: found.type as PrimitiveType, column, depth }
  }
  return undefined
}

/** The value of the field in a file, as an expression of SQL. */
export function fieldPathSql({ column, depth }: FieldPath, file: FileColumns): string {
  let sql = columnSql(column, file)
  for (let level = 0; level < depth; level += 1) sql = `struct_extract_at(${sql}, 1)`
  return sql
}
