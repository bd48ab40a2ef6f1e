import type { ContentFile } from '../../manifests/content-file.ts'
import type { SchemaField } from '../../schema/schema.ts'
import { isNested, type PrimitiveType } from '../../schema/type.ts'
import { valueFromBytes } from '../../values/binary.ts'
import { compareValues } from '../../values/compare.ts'
import type { Value } from '../../values/value.ts'
import type { FileMetrics } from '../file-metrics.ts'

type Counts = ReadonlyMap<number, number>
type Bounds = ReadonlyMap<number, Uint8Array>

export type MergedMetrics = Omit<FileMetrics, 'recordCount' | 'fileSizeInBytes' | 'splitOffsets'>

/**
 * What a manifest keeps of files that are joined, from what it kept of each. What is not known of one of them is not
 * known of the whole.
 */
export function mergedMetrics(files: readonly ContentFile[], fields: ReadonlyMap<number, SchemaField>): MergedMetrics {
  return {
    columnSizes: sums(files.map((file) => file.columnSizes)),
    valueCounts: sums(files.map((file) => file.valueCounts)),
    nullValueCounts: sums(files.map((file) => file.nullValueCounts)),
    nanValueCounts: sums(files.map((file) => file.nanValueCounts)),
    lowerBounds: outermost(files, fields, (file) => file.lowerBounds, -1),
    upperBounds: outermost(files, fields, (file) => file.upperBounds, 1),
  }
}

function sums(counts: readonly (Counts | undefined)[]): Map<number, number> {
  const merged = new Map<number, number>()
  for (const id of counts[0]?.keys() ?? []) {
    const each = counts.map((count) => count?.get(id))
    if (each.every((count) => count !== undefined)) {
      merged.set(
        id,
        each.reduce((sum, count) => sum + count, 0),
      )
    }
  }
  return merged
}

/** The bounds that are farthest out: the least for -1, the greatest for 1. */
function outermost(
  files: readonly ContentFile[],
  fields: ReadonlyMap<number, SchemaField>,
  boundsOf: (file: ContentFile) => Bounds | undefined,
  side: -1 | 1,
): Map<number, Uint8Array> {
  const merged = new Map<number, Uint8Array>()
  for (const id of new Set(files.flatMap((file) => [...(boundsOf(file)?.keys() ?? [])]))) {
    const type = fields.get(id)?.type
    if (type === undefined || isNested(type) || !isOrdered(type)) continue
    // A file without a single value of the column has no bound, and needs none.
    const relevant = files.filter((file) => boundsOf(file)?.has(id) === true || !isWithoutValues(file, id))
    const bounds = relevant.map((file) => boundsOf(file)?.get(id))
    const farthest = farthestOf(type, bounds, side)
    if (farthest !== undefined) merged.set(id, farthest)
  }
  return merged
}

function farthestOf(
  type: PrimitiveType,
  bounds: readonly (Uint8Array | undefined)[],
  side: -1 | 1,
): Uint8Array | undefined {
  let farthest: Uint8Array | undefined
  for (const bound of bounds) {
    if (bound === undefined) return undefined
    const value = boundValue(type, bound)
    if (value === undefined || Number.isNaN(value)) return undefined // of old writers, and says nothing
    if (farthest === undefined || compareBounds(type, bound, farthest) * side > 0) farthest = bound
  }
  return farthest
}

/** Undefined for bytes that are no value of the type. */
export function boundValue(type: PrimitiveType, bound: Uint8Array): Value | undefined {
  try {
    return valueFromBytes(type, bound)
  } catch {
    return undefined
  }
}

/** Texts by their bytes: some writers cut a bound inside a character, and what is left of that cannot be decoded. */
export function compareBounds(type: PrimitiveType, one: Uint8Array, other: Uint8Array): number {
  if (type.type === 'string') return Buffer.compare(one, other)
  return compareValues(type, valueFromBytes(type, one), valueFromBytes(type, other))
}

/** Bounds of these types are not the least and the greatest of an order. */
function isOrdered({ type }: PrimitiveType): boolean {
  return type !== 'geometry' && type !== 'geography' && type !== 'variant' && type !== 'unknown'
}

/** Whether a column has nothing but nulls, and NaN, which bounds leave out. */
function isWithoutValues(file: ContentFile, id: number): boolean {
  if (file.recordCount === 0) return true
  const values = file.valueCounts?.get(id)
  const nulls = file.nullValueCounts?.get(id)
  if (values === undefined || nulls === undefined) return false
  return values === nulls + (file.nanValueCounts?.get(id) ?? 0)
}
