import { valueFromBytes, valueToBytes } from '../values/binary.ts'
import { compareValues } from '../values/compare.ts'
import type { Value } from '../values/value.ts'
import type { PartitionValues } from './content-file.ts'
import type { PartitionSummary } from './manifest-file.ts'
import type { PartitionTypeField } from './partition-type.ts'

/** Gathers what the files of a manifest have in each partition field. */
export function partitionSummaries(fields: readonly PartitionTypeField[]): {
  add(partition: PartitionValues): void
  finish(): PartitionSummary[]
} {
  const states = fields.map(({ type }) => ({
    type,
    containsNull: false,
    containsNan: false,
    lower: undefined as Value | undefined,
    upper: undefined as Value | undefined,
  }))
  return {
    add(partition) {
      for (const [index, state] of states.entries()) {
        const value = partition[index] ?? null
        if (value === null) state.containsNull = true
        else if (Number.isNaN(value)) state.containsNan = true
        else {
          if (state.lower === undefined || compareValues(state.type, value, state.lower) < 0) state.lower = value
          if (state.upper === undefined || compareValues(state.type, value, state.upper) > 0) state.upper = value
        }
      }
    },
    finish: () =>
      states.map(({ type, containsNull, containsNan, lower, upper }) => ({
        containsNull,
        containsNan,
        ...(lower === undefined ? {} : { lowerBound: valueToBytes(type, zeroAs(lower, -0)) }),
        ...(upper === undefined ? {} : { upperBound: valueToBytes(type, zeroAs(upper, 0)) }),
      })),
  }
}

/** Whether a manifest may hold a file of this partition, by its summaries. Where they say nothing sure, it may. */
export function mayHoldPartition(
  summaries: readonly PartitionSummary[] | undefined,
  fields: readonly PartitionTypeField[],
  partition: PartitionValues,
): boolean {
  if (summaries === undefined) return true
  return fields.every(({ type }, index) => {
    const summary = summaries[index]
    const value = partition[index]
    if (summary === undefined || value === undefined) return true
    if (value === null) return summary.containsNull
    if (Number.isNaN(value)) return summary.containsNan !== false
    const { lowerBound, upperBound } = summary
    // Without a bound there is no value but null and NaN; but some writers leave bounds out.
    if (lowerBound === undefined || upperBound === undefined) return !summary.containsNull
    // Java once ordered uuids by signed numbers.
    if (type.type === 'unknown' || type.type === 'uuid') return true
    try {
      const isAbove = compareValues(type, value, zeroAs(valueFromBytes(type, lowerBound), -0)) >= 0
      return isAbove && compareValues(type, value, zeroAs(valueFromBytes(type, upperBound), 0)) <= 0
    } catch {
      return true // a bound that is not of this type
    }
  })
}

/** -0.0 and 0.0 are equal rows but not equal bytes: as a bound, zero is the one that covers both. */
function zeroAs(value: Value, zero: number): Value {
  return value === 0 ? zero : value
}
