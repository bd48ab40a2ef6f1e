import { valueToBytes } from '../values/binary.ts'
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

/** -0.0 and 0.0 are equal rows but not equal bytes: as a bound, zero is the one that covers both. */
function zeroAs(value: Value, zero: number): Value {
  return value === 0 ? zero : value
}
