import { columnMetrics, propertyOf, tableProperties, type MetricsMode } from '../properties.ts'
import { childrenOf, fieldsById, type Schema } from '../schema/schema.ts'
import { isNested, type Field } from '../schema/type.ts'
import type { SortField, SortOrder } from '../schema/sort-order.ts'

export type { MetricsMode } from '../properties.ts'

const defaultMode: MetricsMode = { mode: 'truncate', length: 16 }

/**
 * The mode of every column, by the table's properties. Without a default of its own a table keeps metrics of its first
 * 100 columns only (`max-inferred-column-defaults`): a wide table would have manifests larger than its data.
 */
export function metricsModes(
  schema: Schema,
  properties: Readonly<Record<string, string>>,
  sortOrder?: SortOrder,
): Map<number, MetricsMode> {
  const explicit = propertyOf({ properties }, tableProperties.metricsDefault)
  const limit = propertyOf({ properties }, tableProperties.metricsMaxInferredColumns)
  const inferred = explicit === undefined ? firstColumns(schema, limit) : undefined
  const base = explicit ?? defaultMode
  const sorted = new Set(sortOrder?.fields.filter(keepsOrder).map((field) => field.sourceId))
  const modes = new Map<number, MetricsMode>()
  for (const field of fieldsById(schema).values()) {
    if (isNested(field.type)) continue
    modes.set(field.id, propertyOf({ properties }, columnMetrics(field.path)) ?? modeOf(field.id))
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
