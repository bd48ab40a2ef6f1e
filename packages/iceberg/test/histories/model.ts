import type { Field, NewTable, PrimitiveType, Value } from '../../src/index.ts'
import type { FilteredColumn } from '../scan/random-filters.ts'
import { field } from '../write/bed.ts'

// What a table holds, as nothing but rows in memory.

/** A row by field id, as it was written. A column that came later is not in it. */
export type ModelRow = ReadonlyMap<number, Value | null>

/** Rows, with the columns they are read with. */
export interface State {
  readonly rows: readonly ModelRow[]
  readonly fields: readonly Field[]
}

export const ids = { id: 1, p: 2, s: 3, d: 4, day: 5 } as const

export const startSchema: NewTable['schema'] = {
  fields: [
    field(ids.id, 'id', { type: 'int' }),
    field(ids.p, 'p', { type: 'string' }),
    field(ids.s, 's', { type: 'string' }),
    field(ids.d, 'd', { type: 'float' }),
    field(ids.day, 'day', { type: 'date' }),
  ],
}

/** Rows are made of numbers up to this. */
export const maxSeed = 24

const parts = ['a', 'b/ ü', 'c', null, 'a🐢']
const texts = [null, '', 'same beginning, then x', 'same beginning, then 🐢', 'ß', '\uffff', '🐢🐢']
const floats = [Number.NaN, -0, 0, Math.fround(0.1), -2.5, null, Number.POSITIVE_INFINITY]

/** A row of these columns that follows from a number, with nulls, NaN and both zeros here and there. */
export function makeRow(fields: readonly Field[], seed: number): ModelRow {
  return new Map(fields.map((f) => [f.id, makeValue(f, seed)]))
}

function makeValue({ id, type }: Field, seed: number): Value | null {
  switch (id) {
    case ids.id:
      return seed
    case ids.p:
      return pick(parts, seed)
    case ids.s:
      return pick(texts, seed)
    case ids.d:
      return pick(floats, seed)
    case ids.day:
      return seed % 4 === 0 ? null : (seed - 6) * 45
    default:
      if (seed % 3 === 0) return null
      return type.type === 'string' ? `x${seed}` : seed / 2
  }
}

function pick<T>(items: readonly T[], index: number): T | null {
  return items[index % items.length] ?? null
}

/** The value of a column in a row: as its type has it today, and its default where the row has none. */
export function valueOf(row: ModelRow, { id, type, initialDefault }: Field): Value | null {
  const value = row.has(id) ? (row.get(id) ?? null) : ((initialDefault ?? null) as Value | null)
  if (typeof value !== 'number') return value
  if (type.type === 'long') return BigInt(value)
  return type.type === 'timestamp' ? BigInt(value) * 86_400_000_000n : value
}

export function asRow(fields: readonly Field[], row: ModelRow): Record<string, Value | null> {
  return Object.fromEntries(fields.map((f) => [f.name, valueOf(row, f)]))
}

/** A value as a text that no other value has. */
export function textOf(value: unknown): string {
  if (typeof value === 'bigint') return `${value}n`
  if (typeof value === 'number') return Object.is(value, -0) ? '-0' : String(value)
  return JSON.stringify(value)
}

function rowText(row: Readonly<Record<string, unknown>>): string {
  return Object.entries(row)
    .map(([name, value]) => `${name}: ${textOf(value)}`)
    .join(', ')
}

/** Rows as texts that compare, whatever their order. */
export function rowTexts(rows: readonly Readonly<Record<string, unknown>>[]): string[] {
  return rows.map(rowText).toSorted()
}

export function stateTexts({ rows, fields }: State): string[] {
  return rowTexts(rows.map((row) => asRow(fields, row)))
}

/** The rows without one for each of those given, which must all be among them. */
export function without(state: State, gone: readonly Readonly<Record<string, unknown>>[]): ModelRow[] {
  const left = rowTexts(gone)
  const stays = state.rows.filter((row) => {
    const index = left.indexOf(rowText(asRow(state.fields, row)))
    if (index >= 0) left.splice(index, 1)
    return index < 0
  })
  if (left.length > 0) throw new Error(`the table has rows that the model has not: ${left.join('; ')}`)
  return stays
}

/** The columns with all values that rows may have in them, and some that none has. */
export function filteredColumns(fields: readonly Field[]): FilteredColumn[] {
  const rows = Array.from({ length: maxSeed + 2 }, (_, seed) => makeRow(fields, seed))
  return fields.map((f) => {
    const values = rows.map((row) => valueOf(row, f)).filter((value) => value !== null)
    return { name: f.name, type: f.type, values: [...values, ...strangers(f.type as PrimitiveType)] }
  })
}

function strangers({ type }: PrimitiveType): Value[] {
  if (type === 'string') return ['same beginning', 'same beginning, then 🐢🐢', 'zz']
  return type === 'float' || type === 'double' ? [-1e30, 1] : []
}
