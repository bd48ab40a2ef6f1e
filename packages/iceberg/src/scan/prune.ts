import { isUtf8 } from 'node:buffer'
import type { ContentFile } from '../manifests/content-file.ts'
import type { ManifestFile, PartitionSummary } from '../manifests/manifest-file.ts'
import type { PartitionTypeField } from '../manifests/partition-type.ts'
import type { PartitionSpec } from '../schema/partition-spec.ts'
import type { PrimitiveType } from '../schema/type.ts'
import { valueFromBytes } from '../values/binary.ts'
import type { Value } from '../values/value.ts'
import type { BoundFilter, Term } from './filter.ts'
import { projectTerm } from './partition-filter.ts'
import { mayMatch, type ValueRange } from './value-range.ts'

/** A spec with the types of its values. */
export interface TypedSpec {
  readonly spec: PartitionSpec
  readonly types: readonly PartitionTypeField[]
}

/** Whether a manifest may have a file with rows that are wanted, by its partition summaries. */
export function manifestMayMatch(filter: BoundFilter, manifest: ManifestFile, spec: TypedSpec): boolean {
  const { partitions } = manifest
  if (partitions === undefined) return true
  return holds(filter, (term) =>
    everyPartitionField(term, spec, (projected, index) => {
      const summary = partitions[index]
      return summary === undefined || mayMatch(projected, summaryRange(projected.type, summary))
    }),
  )
}

/** Whether files of a partition may have rows that are wanted. */
export function partitionMayMatch(filter: BoundFilter, file: ContentFile, spec: TypedSpec): boolean {
  return holds(filter, (term) =>
    everyPartitionField(term, spec, (projected, index) => {
      const value = file.partition[index]
      return value === undefined || mayMatch(projected, valueRange(value))
    }),
  )
}

/** Whether a data file may have rows that are wanted, by its partition and by the bounds of its columns. */
export function fileMayMatch(filter: BoundFilter, file: ContentFile, spec: TypedSpec): boolean {
  if (!partitionMayMatch(filter, file, spec)) return false
  return holds(filter, (term) => mayMatch(term, columnRange(term, file)))
}

function holds(filter: BoundFilter, test: (term: Term) => boolean): boolean {
  if (filter.op === 'term') return test(filter.term)
  if (filter.op === 'and') return filter.filters.every((inner) => holds(inner, test))
  return filter.filters.some((inner) => holds(inner, test))
}

function everyPartitionField(
  term: Term,
  { spec, types }: TypedSpec,
  test: (projected: Term, index: number) => boolean,
): boolean {
  return spec.fields.every((field, index) => {
    if (field.sourceId !== term.fieldId || types[index]?.type.type === 'unknown') return true
    const projected = projectTerm(term, field.transform)
    return projected === undefined || test(projected, index)
  })
}

// Java once ordered uuids by signed numbers, so bounds of more than one value say nothing.
function boundsOf(type: PrimitiveType, lower: Uint8Array | undefined, upper: Uint8Array | undefined) {
  const isUuid = type.type === 'uuid'
  if (isUuid && (lower === undefined || upper === undefined || Buffer.compare(lower, upper) !== 0)) return {}
  return { lower: boundOf(type, lower), upper: boundOf(type, upper) }
}

/**
 * A bound that is not of this type says nothing: of a file that was written after the column was widened, or of a text
 * that was cut inside a character.
 */
function boundOf(type: PrimitiveType, bytes: Uint8Array | undefined): Value | undefined {
  try {
    if (bytes === undefined || (type.type === 'string' && !isUtf8(bytes))) return undefined
    return valueFromBytes(type, bytes)
  } catch {
    return undefined
  }
}

function summaryRange(type: PrimitiveType, summary: PartitionSummary): ValueRange {
  const { containsNull, containsNan, lowerBound, upperBound } = summary
  const isFloat = type.type === 'float' || type.type === 'double'
  return {
    ...boundsOf(type, lowerBound, upperBound),
    mayBeNull: containsNull,
    mayBeNan: isFloat && containsNan !== false,
    // Without a bound there is no value but null and NaN; but some writers leave bounds out.
    mayBeValue: lowerBound !== undefined || !containsNull,
    isExact: false,
  }
}

function valueRange(value: Value | null): ValueRange {
  if (value === null) return { mayBeNull: true, mayBeNan: false, mayBeValue: false, isExact: false }
  const isNan = Number.isNaN(value)
  return { lower: value, upper: value, mayBeNull: false, mayBeNan: isNan, mayBeValue: !isNan, isExact: !isNan }
}

function columnRange(term: Term, file: ContentFile): ValueRange {
  const { fieldId, type } = term
  const isFloat = type.type === 'float' || type.type === 'double'
  const [values, nulls, nans] = [file.valueCounts, file.nullValueCounts, file.nanValueCounts].map((counts) =>
    counts?.get(fieldId),
  )
  const allNull = values !== undefined && nulls === values && values > 0
  const allNan = isFloat && values !== undefined && values > 0 && nans === values
  return {
    ...boundsOf(type, file.lowerBounds?.get(fieldId), file.upperBounds?.get(fieldId)),
    mayBeNull: nulls !== 0,
    mayBeNan: isFloat && nans !== 0,
    mayBeValue: !allNull && !allNan,
    isExact: false,
  }
}
