import { viewOf } from '../values/bytes.ts'
import type { PartitionValues } from './content-file.ts'

/** One text for each partition of each spec. Null is a value of its own, NaN equals NaN, and -0.0 is not 0.0. */
export function partitionKey(specId: number, partition: PartitionValues): string {
  const texts = partition.map((value) => {
    if (value === null) return 'null'
    if (value instanceof Uint8Array) return `x${viewOf(value).toString('hex')}`
    if (Object.is(value, -0)) return '-0'
    return typeof value === 'string' ? JSON.stringify(value) : String(value)
  })
  return `${specId}:${texts.join(',')}`
}
