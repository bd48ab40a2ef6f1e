import {
  createTable,
  type DuckDb,
  type Field,
  type NewTable,
  type PrimitiveType,
  type Storage,
  type Table,
} from '@fencepost/iceberg'
import { HistoryCatalog } from './history-catalog.ts'
import { Seeded } from './seeded.ts'

export const hourMs = 3_600_000
export const dayMs = 24 * hourMs

/** What a table of the sample lake is made with. */
export interface Making {
  readonly location: string
  readonly storage: Storage
  readonly duckDb: DuckDb
  /** The present time of the lake: everything in it is dated before. */
  readonly nowMs: number
  /** How large: 1 is the whole lake, a tenth has about a tenth of the files and snapshots. */
  readonly scale: number
  readonly signal?: AbortSignal | undefined
  /** Called with the share that is done. */
  readonly onProgress: (done: number) => void
}

/** One table of the sample lake. */
export interface LakeTable {
  readonly namespace: string
  readonly name: string
  /** What is wrong with it, for people. */
  readonly story: string
  readonly make: (making: Making) => Promise<Table>
}

/** A table with a past: `at()` sets the time of what is committed next. */
export interface PastTable {
  readonly table: Table
  readonly catalog: HistoryCatalog
  readonly random: Seeded
  readonly at: (ms: number) => void
}

export async function beginTable(
  { location, storage, duckDb }: Making,
  { namespace, name }: Pick<LakeTable, 'namespace' | 'name'>,
  createdMs: number,
  newTable: NewTable,
): Promise<PastTable> {
  const catalog = new HistoryCatalog(location, storage, createdMs)
  const table = await createTable(catalog, { namespace: [namespace], name }, newTable, { duckDb })
  const at = (ms: number): void => {
    catalog.nowMs = Math.max(Math.floor(ms), catalog.nowMs)
  }
  return { table, catalog, at, random: new Seeded(`${namespace}.${name}`) }
}

/** A count for the scale, never below the least that still shows what is wrong. */
export function scaled(count: number, scale: number, least = 1): number {
  return Math.max(Math.min(least, count), Math.round(count * scale))
}

/** Columns by name and type; all but those marked with `?` are required. Ids follow the order. */
export function columns(types: Readonly<Record<string, PrimitiveType['type'] | PrimitiveType>>): Field[] {
  return Object.entries(types).map(([name, type], index) => ({
    id: index + 1,
    name: name.replace('?', ''),
    required: !name.endsWith('?'),
    type: (typeof type === 'string' ? { type } : type) as PrimitiveType,
  }))
}

/** A time as tables hold it: microseconds. */
export function micros(ms: number): bigint {
  return BigInt(Math.floor(ms)) * 1000n
}
