import type { SizeLimits } from './options.ts'

// The arithmetic of Iceberg's SizeBasedFileRewritePlanner, so that a plan has the numbers that Spark's would have.

/** What a split may be larger than its share. */
const splitOverheadBytes = 5 * 1024

/** How large a file may become while it is written: between the target and what would be too large. */
export function writeMaxBytes({ target, max }: SizeLimits): number {
  return Math.floor(target + (max - target) * 0.5)
}

/** How many files to make of so many bytes. A small rest is spread over the others if they stay near the target. */
export function expectedOutputFiles(bytes: number, sizes: SizeLimits): number {
  const { target, min } = sizes
  if (bytes < target) return 1
  const whole = Math.floor(bytes / target)
  const rest = bytes % target
  const withRest = rest === 0 ? whole : whole + 1
  if (rest > min) return withRest
  const average = Math.floor(bytes / whole)
  return average < Math.min(1.1 * target, writeMaxBytes(sizes)) ? whole : withRest
}

/** How many bytes of the input each new file takes. */
export function splitBytes(bytes: number, sizes: SizeLimits): number {
  const even = Math.floor(bytes / expectedOutputFiles(bytes, sizes)) + splitOverheadBytes
  return even < sizes.target ? sizes.target : Math.min(even, writeMaxBytes(sizes))
}
