import { IcebergError } from '../errors.ts'
import { childrenOf, fieldsById, type Schema } from '../schema/schema.ts'
import { isNested, type Field } from '../schema/type.ts'
import type { SortField, SortOrder } from '../schema/sort-order.ts'

/** What is kept of a column in manifests; `truncate` cuts texts and binaries to so many code points or bytes. */
export type MetricsMode =
  { readonly mode: 'none' | 'counts' | 'full' } | { readonly mode: 'truncate'; readonly length: number }

const defaultMode: MetricsMode = { mode: 'truncate', length: 16 }
const prefix = 'write.metadata.metrics.'

/** Reads a mode as table properties spell it: none, counts, truncate(16), full. */
export function parseMetricsMode(text: string): MetricsMode {
  const mode = text.trim().toLowerCase()
  if (mode === 'none' || mode === 'counts' || mode === 'full') return { mode }
  const length = Number(/^truncate\((\d+)\)$/.exec(mode)?.[1] ?? 0)
  if (length > 0) return { mode: 'truncate', length }
  throw new IcebergError('metadata_invalid', `"${text}" is not a metrics mode: use none, counts, truncate(16) or full`)
}

/**
 * The mode of every column, by the table's properties. Without a default of its own a table keeps metrics of its first
 * 100 columns only (`max-inferred-column-defaults`): a wide table would have manifests larger than its data.
 */
export function metricsModes(
  schema: Schema,
  properties: Readonly<Record<string, string>>,
  sortOrder?: SortOrder,
): Map<number, MetricsMode> {
  const explicit = properties[`${prefix}default`]
  const limit = Number(properties[`${prefix}max-inferred-column-defaults`] ?? 100)
  const inferred = explicit === undefined ? firstColumns(schema, limit) : undefined
  const base = explicit === undefined ? defaultMode : parseMetricsMode(explicit)
  const sorted = new Set(sortOrder?.fields.filter(keepsOrder).map((field) => field.sourceId))
  const modes = new Map<number, MetricsMode>()
  for (const field of fieldsById(schema).values()) {
    if (isNested(field.type)) continue
    const given = properties[`${prefix}column.${field.path.join('.')}`]
    modes.set(field.id, given === undefined ? modeOf(field.id) : parseMetricsMode(given))
  }
  return modes

  function modeOf(id: number): MetricsMode {
    const mode = inferred === undefined || inferred.has(id) ? base : ({ mode: 'none' } as const)
    // Rows are looked for by what they are sorted by.
    return sorted.has(id) && (mode.mode === 'none' || mode.mode === 'counts') ? defaultMode : mode
  }
}

/** Whether the values of a column are in order when the results of its transform are. */
function keepsOrder({ transform: { name } }: SortField): boolean {
  return name !== 'bucket' && name !== 'void' && name !== 'unknown'
}

/** The first columns that hold values, those at the top before those inside others. */
function firstColumns(schema: Schema, limit: number): Set<number> {
  const first = new Set<number>()
  for (let level: readonly Field[] = schema.fields; level.length > 0;) {
    for (const field of level) {
      if (first.size >= limit) return first
      if (!isNested(field.type)) first.add(field.id)
    }
    level = level.flatMap((field) => childrenOf(field.type))
  }
  return first
}
