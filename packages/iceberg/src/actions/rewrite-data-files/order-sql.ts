import { IcebergError } from '../../errors.ts'
import { transformText } from '../../schema/partition-spec.ts'
import { fieldsById, type Schema, type SchemaField } from '../../schema/schema.ts'
import type { SortField } from '../../schema/sort-order.ts'
import { isNested, type PrimitiveType } from '../../schema/type.ts'
import { sqlName } from '../../parquet/duckdb.ts'
import type { KeySource } from './distinct-keys.ts'

/** A column of the rows `r`, also inside of structs, by its id; undefined when there is none to sort by. */
export function sourceOf(schema: Schema, id: number): KeySource | undefined {
  const fields = fieldsById(schema)
  const field = fields.get(id)
  if (field === undefined || isNested(field.type)) return undefined
  const names: string[] = []
  for (let at: SchemaField | undefined = field; at !== undefined; at = fields.get(at.parentId ?? -1)) {
    if (at !== field && at.type.type !== 'struct') return undefined
    names.unshift(sqlName(at.name))
  }
  return { sql: `r.${names.join('.')}`, type: field.type }
}

/** A term of ORDER BY; `bucketOf` makes a join for what SQL cannot compute, and returns the name of its column. */
export async function orderTerm(
  schema: Schema,
  field: SortField,
  bucketOf: (source: KeySource, field: SortField) => Promise<string>,
): Promise<string | undefined> {
  const { transform, direction, nullOrder } = field
  if (transform.name === 'void') return undefined
  const source = sourceOf(schema, field.sourceId)
  if (source === undefined) throw cannot(field, `the table has no such column, or not one to sort by`)
  const key = transform.name === 'bucket' ? await bucketOf(source, field) : transformed(source, field)
  return `${key} ${direction} ${nullOrder === 'nulls-first' ? 'nulls first' : 'nulls last'}`
}

function transformed({ sql, type }: KeySource, field: SortField): string {
  const { transform } = field
  switch (transform.name) {
    case 'identity':
      return sql
    case 'year':
    case 'month':
    case 'day':
    case 'hour':
      return `date_trunc('${transform.name}', ${sql})`
    case 'truncate':
      return truncated(sql, type, transform.width, field)
    default:
      throw cannot(field, 'the transform is not known')
  }
}

function truncated(sql: string, { type }: PrimitiveType, width: number, field: SortField): string {
  if (type === 'string') return `left(${sql}, ${width})`
  const number = `${sql}::hugeint`
  if (type === 'int' || type === 'long') return `(${number} - ((${number} % ${width}) + ${width}) % ${width})`
  throw cannot(field, `${type} values cannot be truncated here`)
}

function cannot(field: SortField, why: string): IcebergError {
  return new IcebergError(
    'action_refused',
    `Rows cannot be sorted by ${transformText(field.transform)} of column ${field.sourceId}: ${why}.`,
  )
}
