import type { ContentFile } from '../manifests/content-file.ts'
import { viewOf } from '../values/bytes.ts'

/** The field ids of position delete files. */
export const deletePathId = 2147483546
export const deletePositionId = 2147483545

/** A delete file, or a deletion vector, with its sequence number. */
export interface Delete {
  readonly file: ContentFile
  readonly sequenceNumber: bigint
}

/** Everything that deletes rows of one data file. */
export interface AppliedDeletes {
  readonly vector?: Delete
  /** Files of positions: only the rows with the path of the data file count. */
  readonly positions: readonly Delete[]
  readonly equality: readonly Delete[]
}

/** The one data file that position deletes are for: named, or known by the bounds of the paths being equal. */
export function onlyPath(file: ContentFile): string | undefined {
  if (file.referencedDataFile !== undefined) return file.referencedDataFile
  const lower = file.lowerBounds?.get(deletePathId)
  const upper = file.upperBounds?.get(deletePathId)
  if (lower === undefined || upper === undefined || Buffer.compare(lower, upper) !== 0) return undefined
  return viewOf(lower).toString('utf8')
}
