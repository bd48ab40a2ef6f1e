import { onlyPath } from '../../snapshot/delete.ts'
import type { ScanFile } from '../../scan/plan.ts'
import type { RewriteSettings } from './options.ts'

// Which files and groups are worth rewriting, by the rules of Iceberg's BinPackRewriteFilePlanner.

/** What makes a file a candidate, or a group one to rewrite. */
export type FileReason = 'too-small' | 'too-large' | 'delete-files' | 'deleted-rows' | 'rewrite-all'
export type GroupReason = 'enough-files' | 'enough-bytes' | 'too-many-bytes' | 'deletes' | 'rewrite-all'

/** Why a file is to be rewritten; undefined: it is well as it is. */
export function fileReason(scanned: ScanFile, { sizes, options }: RewriteSettings): FileReason | undefined {
  if (options['rewrite-all']) return 'rewrite-all'
  const { fileSizeInBytes: bytes } = scanned.file
  if (deleteFiles(scanned) >= options['delete-file-threshold']) return 'delete-files'
  if (deletedShare(scanned) >= options['delete-ratio-threshold']) return 'deleted-rows'
  if (bytes < sizes.min) return 'too-small'
  return bytes > sizes.max ? 'too-large' : undefined
}

/**
 * Position deletes that are older than the file itself cannot name it, though their partition and sequence number fit:
 * those stay beside files that were rewritten from the snapshot that added them.
 */
function deleteFiles({ deletes, fileSequenceNumber }: ScanFile): number {
  const vectors = deletes.vector === undefined ? 0 : 1
  const positions = deletes.positions.filter(
    ({ file, sequenceNumber }) =>
      onlyPath(file) !== undefined || fileSequenceNumber === undefined || sequenceNumber >= fileSequenceNumber,
  )
  return vectors + positions.length + deletes.equality.length
}

/** The share of rows that deletes of this file alone are known to delete. NaN, and so never enough, of an empty file. */
function deletedShare({ file, deletes }: ScanFile): number {
  const ofThisFile = deletes.positions.filter((each) => onlyPath(each.file) !== undefined)
  const known = [...(deletes.vector === undefined ? [] : [deletes.vector]), ...ofThisFile]
  const deleted = known.reduce((sum, each) => sum + each.file.recordCount, 0)
  return deleted === 0 ? 0 : Math.min(deleted, file.recordCount) / file.recordCount
}

export interface Candidate {
  readonly bytes: number
  readonly why: FileReason
}

/** Why a group is to be rewritten; undefined: that would not be worth it. */
export function groupReason(files: readonly Candidate[], { sizes, options }: RewriteSettings): GroupReason | undefined {
  if (options['rewrite-all']) return 'rewrite-all'
  if (files.some(({ why }) => why === 'delete-files' || why === 'deleted-rows')) return 'deletes'
  const bytes = files.reduce((sum, file) => sum + file.bytes, 0)
  if (files.length > 1 && files.length >= options['min-input-files']) return 'enough-files'
  if (files.length > 1 && bytes > sizes.target) return 'enough-bytes'
  return bytes > sizes.max ? 'too-many-bytes' : undefined
}

/** Packs files in their order: a group is closed by the first file that does not fit into it. */
export function packed<T extends { readonly bytes: number }>(
  files: readonly T[],
  { maxBytes, maxFiles }: { readonly maxBytes: number; readonly maxFiles: number },
): T[][] {
  const groups: T[][] = []
  let bytes = 0
  for (const file of files) {
    const group = groups.at(-1)
    if (group !== undefined && bytes + file.bytes <= maxBytes && group.length < maxFiles) {
      group.push(file)
      bytes += file.bytes
    } else {
      groups.push([file])
      bytes = file.bytes
    }
  }
  return groups
}
