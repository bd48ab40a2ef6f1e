import { onlyPath } from '../../snapshot/delete.ts'
import type { ScanFile } from '../../scan/plan.ts'

/** Rows of a data file, by their positions: from the first up to, and without, the last. */
export interface Slice {
  readonly scanned: ScanFile
  readonly from: number
  readonly to: number
}

/** Boundaries that are this near to the end of a file, as a share of the whole, are moved there. */
const nearEnough = 0.05

/** The room that files take up while they are read, however many of their rows are deleted. */
export interface Room {
  readonly bytes: number
  readonly of: (slice: Slice) => number
}

const anyRoom: Room = { bytes: Number.POSITIVE_INFINITY, of: () => 0 }

export function wholeSlices(files: readonly ScanFile[]): Slice[] {
  return files.map((scanned) => ({ scanned, from: 0, to: scanned.file.recordCount }))
}

export function isWhole({ scanned, from, to }: Slice): boolean {
  return from === 0 && to === scanned.file.recordCount
}

/** The bytes of a file that its live rows take, as far as that is known without reading deletes. */
export function sliceBytes({ scanned: { file, deletes }, from, to }: Slice): number {
  if (file.recordCount === 0) return 0
  const ofThisFile = deletes.positions.filter((each) => onlyPath(each.file) !== undefined)
  const deleted = [...ofThisFile, ...(deletes.vector === undefined ? [] : [deletes.vector])].reduce(
    (sum, each) => sum + each.file.recordCount,
    0,
  )
  const live = Math.max(0, 1 - deleted / file.recordCount)
  return file.fileSizeInBytes * live * ((to - from) / file.recordCount)
}

export function bytesOf(slices: readonly Slice[]): number {
  return slices.reduce((sum, slice) => sum + sliceBytes(slice), 0)
}

/**
 * Takes rows of about so many bytes from the front. A file on the boundary is cut in two. Of files that are mostly deleted
 * only as many are taken as there is room for.
 */
export function take(slices: readonly Slice[], bytes: number, room: Room = anyRoom): { taken: Slice[]; rest: Slice[] } {
  const taken: Slice[] = []
  let left = bytes
  let roomLeft = room.bytes
  for (const [index, slice] of slices.entries()) {
    roomLeft -= room.of(slice)
    if (roomLeft < 0 && taken.length > 0) return { taken, rest: slices.slice(index) }
    const size = sliceBytes(slice)
    if (size <= left + bytes * nearEnough) {
      taken.push(slice)
      left -= size
      continue
    }
    const isHardlyBegun = left < bytes * nearEnough
    if (isHardlyBegun && taken.length > 0) return { taken, rest: slices.slice(index) }
    const rows = Math.max(1, Math.round((slice.to - slice.from) * (left / size)))
    const at = Math.min(slice.to, slice.from + rows)
    taken.push({ ...slice, to: at })
    const cut = at < slice.to ? [{ ...slice, from: at }] : []
    return { taken, rest: [...cut, ...slices.slice(index + 1)] }
  }
  return { taken, rest: [] }
}
