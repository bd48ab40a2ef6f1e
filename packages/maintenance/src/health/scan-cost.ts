/** What one full scan of a table has to read. */
export interface ScanShape {
  /** Manifests with live files. */
  readonly manifests: number
  readonly dataFiles: number
  /** Bytes of data files whose rows are live. */
  readonly liveBytes: number
  /** Bytes of data files whose rows are deleted: they are read all the same. */
  readonly deletedBytes: number
  /** Files of position deletes that apply to some data file. */
  readonly positionDeleteFiles: number
  readonly deletionVectors: number
  /** Pairs of an equality delete file and a data file that it applies to. */
  readonly equalityDeletes: number
}

/** Seconds of the reference reader for one of each. `scripts/scan-costs.mjs` measures them. */
export interface ScanCosts {
  readonly manifest: number
  readonly dataFile: number
  readonly byte: number
  readonly positionDeleteFile: number
  readonly deletionVector: number
  readonly equalityDelete: number
}

/**
 * A reader of one thread on an object store with 10 ms to the first byte and 100 MB/s: a round trip, and a few
 * milliseconds of work. They are rounded: what counts is how they compare with each other.
 */
export const defaultScanCosts: ScanCosts = {
  manifest: 0.015,
  dataFile: 0.01,
  byte: 1 / 100_000_000,
  positionDeleteFile: 0.012,
  deletionVector: 0.012,
  equalityDelete: 0.002,
}

const parts = {
  manifests: 'manifest',
  dataFiles: 'dataFile',
  liveBytes: 'byte',
  deletedBytes: 'byte',
  positionDeleteFiles: 'positionDeleteFile',
  deletionVectors: 'deletionVector',
  equalityDeletes: 'equalityDelete',
} as const satisfies Record<keyof ScanShape, keyof ScanCosts>

export type ScanPart = keyof ScanShape
const scanParts = Object.keys(parts) as readonly ScanPart[]

/** Whole microseconds, so that sums of them are exact. */
export type Micros = number

export function partMicros(shape: ScanShape, part: ScanPart, costs: ScanCosts): Micros {
  return Math.round(shape[part] * costs[parts[part]] * 1_000_000)
}

export function scanMicros(shape: ScanShape, costs: ScanCosts): Micros {
  return scanParts.reduce((sum, part) => sum + partMicros(shape, part, costs), 0)
}
