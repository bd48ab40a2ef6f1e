import { sqlText } from '../parquet/duckdb.ts'
import type { BoundFilter, Term } from './filter.ts'
import { sqlValue } from './sql-value.ts'

/** The filter as a condition of SQL that is true or false, and never null. */
export function filterSql(filter: BoundFilter, columnOf: (fieldId: number) => string): string {
  if (filter.op === 'term') return termSql(filter.term, columnOf(filter.term.fieldId))
  if (filter.filters.length === 0) return filter.op === 'and' ? 'true' : 'false'
  return `(${filter.filters.map((inner) => filterSql(inner, columnOf)).join(` ${filter.op} `)})`
}

function termSql({ op, type, values }: Term, column: string): string {
  const literals = values.map((value) => sqlValue(type, value))
  switch (op) {
    case 'is null':
    case 'is not null':
      return `${column} ${op}`
    case 'is nan':
    case 'is not nan': {
      const isFloat = type.type === 'float' || type.type === 'double'
      const test = isFloat ? `coalesce(isnan(${column}), false)` : 'false'
      return op === 'is nan' ? test : `not ${test}`
    }
    case 'in':
    case 'not in': {
      const test = literals.length === 0 ? 'false' : `coalesce(${column} in (${literals.join(', ')}), false)`
      return op === 'in' ? test : `not ${test}`
    }
    case 'starts with':
    case 'not starts with': {
      const test = `coalesce(starts_with(${column}, ${sqlText(String(values[0]))}), false)`
      return op === 'starts with' ? test : `not ${test}`
    }
    case '!=':
      return `coalesce(${column} != ${literals[0]}, true)`
    default:
      return `coalesce(${column} ${op} ${literals[0]}, false)`
  }
}
