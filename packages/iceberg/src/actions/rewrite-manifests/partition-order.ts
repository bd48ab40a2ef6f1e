import { IcebergError } from '../../errors.ts'
import type { ManifestEntry } from '../../manifests/content-file.ts'
import type { ManifestFile, PartitionSummary } from '../../manifests/manifest-file.ts'
import type { PartitionTypeField } from '../../manifests/partition-type.ts'
import type { PartitionSpec } from '../../schema/partition-spec.ts'
import type { PrimitiveType } from '../../schema/type.ts'
import { valueFromBytes } from '../../values/binary.ts'
import { compareValues } from '../../values/compare.ts'
import type { Value } from '../../values/value.ts'

/** A field of the partition that entries are ordered by. */
interface OrderField {
  readonly index: number
  readonly type: PrimitiveType
}

/** The fields to order by: those named, else all of the spec. */
export function orderFields(
  spec: PartitionSpec,
  types: readonly PartitionTypeField[],
  sortBy: readonly string[],
): OrderField[] {
  const fieldOf = (index: number): OrderField => ({ index, type: types[index]?.type ?? { type: 'unknown' } })
  if (sortBy.length === 0) return spec.fields.map((_, index) => fieldOf(index))
  return sortBy.map((name) => {
    const index = spec.fields.findIndex((field) => field.name === name)
    if (index !== -1) return fieldOf(index)
    const known = spec.fields.map((field) => field.name).join(', ') || 'none'
    throw new IcebergError(
      'value_invalid',
      `Partition spec ${spec.specId} has no field "${name}" to sort manifests by; its fields: ${known}.`,
    )
  })
}

/** The order of entries: null first, NaN last. */
export function compareEntries(fields: readonly OrderField[]): (a: ManifestEntry, b: ManifestEntry) => number {
  return (a, b) => {
    for (const { index, type } of fields) {
      const order = comparePartitionValues(type, a.file.partition[index] ?? null, b.file.partition[index] ?? null)
      if (order !== 0) return order
    }
    return 0
  }
}

function comparePartitionValues(type: PrimitiveType, a: Value | null, b: Value | null): number {
  if (a === null || b === null) return Number(b === null) - Number(a === null)
  return compareValues(type, a, b)
}

interface Range {
  readonly lower: Value | null
  readonly upper: Value | null
}

/**
 * The manifests in the order of their partitions if no two of them overlap by more than one value; undefined if they
 * do, or if it is not known. Only what the manifest list says is looked at: among manifests that have more than one
 * value of the first field nothing is said of the others.
 */
export function clustered(
  manifests: readonly ManifestFile[],
  fields: readonly OrderField[],
): readonly ManifestFile[] | undefined {
  const [field, ...others] = fields
  if (field === undefined || manifests.length < 2) return manifests
  const ranged: { manifest: ManifestFile; range: Range }[] = []
  for (const manifest of manifests) {
    const range = rangeOf(field.type, manifest.partitions?.[field.index])
    if (range === undefined) return undefined
    ranged.push({ manifest, range })
  }
  const compare = (a: Value | null, b: Value | null): number => comparePartitionValues(field.type, a, b)
  const sorted = ranged.toSorted(
    (a, b) => compare(a.range.lower, b.range.lower) || compare(a.range.upper, b.range.upper),
  )
  const ordered: ManifestFile[] = []
  for (let at = 0; at < sorted.length;) {
    const { range, manifest } = sorted[at] as (typeof sorted)[number]
    const before = sorted[at - 1]
    if (before !== undefined && compare(before.range.upper, range.lower) > 0) return undefined
    const isSame = (other: (typeof sorted)[number] | undefined): boolean =>
      other !== undefined &&
      compare(other.range.lower, range.lower) === 0 &&
      compare(other.range.upper, range.lower) === 0
    let end = at + 1
    while (isSame(sorted[at]) && isSame(sorted[end])) end += 1
    if (end === at + 1) ordered.push(manifest)
    else {
      const inner = clustered(
        sorted.slice(at, end).map((each) => each.manifest),
        others,
      )
      if (inner === undefined) return undefined
      ordered.push(...inner)
    }
    at = end
  }
  return ordered
}

function rangeOf(type: PrimitiveType, summary: PartitionSummary | undefined): Range | undefined {
  if (summary === undefined) return undefined
  const { containsNull, containsNan, lowerBound, upperBound } = summary
  const isFloat = type.type === 'float' || type.type === 'double'
  const hasNan = isFloat && containsNan !== false
  const lower = containsNull ? null : (boundOf(type, lowerBound) ?? (hasNan ? Number.NaN : undefined))
  const upper = hasNan ? Number.NaN : (boundOf(type, upperBound) ?? (containsNull ? null : undefined))
  return lower === undefined || upper === undefined ? undefined : { lower, upper }
}

/** Undefined where there is none, or where it is not of this type. The two zeros are one here. */
function boundOf(type: PrimitiveType, bytes: Uint8Array | undefined): Value | undefined {
  try {
    if (bytes === undefined || type.type === 'unknown') return undefined
    const value = valueFromBytes(type, bytes)
    return value === 0 ? 0 : value
  } catch {
    return undefined
  }
}
