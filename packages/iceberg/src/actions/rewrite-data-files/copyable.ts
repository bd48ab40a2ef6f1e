import { partitionKey } from '../../manifests/partition-key.ts'
import type { ScanFile } from '../../scan/plan.ts'
import type { RewriteSettings } from './options.ts'

// Files are copied where their rows stay as they are: no deletes apply, nothing is sorted, and the partition stays. Their
// row groups stay as they are too, so they must be large enough for readers. What manifests tell decides the plan; the
// footers decide the rewrite.

/** `copy`: column chunks are copied without decoding them, and a new footer is written. `encode`: rows are read and written. */
export type How = 'copy' | 'encode'
export type HowReason = 'large-row-groups' | 'sorted' | 'other-partitions' | 'deletes' | 'small-row-groups' | 'alone'

/** What keeps a file from being copied, as far as its manifest tells; undefined: nothing. */
export function copyObstacle(
  { file, deletes }: ScanFile,
  { sizes, options }: RewriteSettings,
): 'deletes' | 'small-row-groups' | undefined {
  if (deletes.vector !== undefined || deletes.positions.length + deletes.equality.length > 0) return 'deletes'
  // A file that is too large is divided, and an empty one has nothing to copy.
  const rowGroups = file.splitOffsets?.length ?? 0
  const isDivided = file.fileSizeInBytes > sizes.max
  if (rowGroups === 0 || isDivided || file.recordCount === 0) return 'small-row-groups'
  return file.fileSizeInBytes / rowGroups < options['copy-min-row-group-bytes'] ? 'small-row-groups' : undefined
}

/** Whether rows stay in their partition and in the order they are in. */
export function staysInPlace(files: readonly ScanFile[], { strategy, outputSpecId }: RewriteSettings): boolean {
  const keys = new Set(files.map(({ file }) => partitionKey(file.specId, file.partition)))
  return strategy === 'binpack' && keys.size === 1 && files.every(({ file }) => file.specId === outputSpecId)
}

/** How a group of one partition will be rewritten, unless the footers of its files say otherwise. */
export function howOf(
  obstacles: readonly ReturnType<typeof copyObstacle>[],
  { strategy, outputSpecId, groupSpecId }: RewriteSettings,
  isOfOnePartition: boolean,
): { how: How; howReason: HowReason } {
  if (strategy !== 'binpack') return { how: 'encode', howReason: 'sorted' }
  if (!isOfOnePartition || outputSpecId !== groupSpecId) return { how: 'encode', howReason: 'other-partitions' }
  const copied = obstacles.filter((obstacle) => obstacle === undefined).length
  if (copied > 1) return { how: 'copy', howReason: 'large-row-groups' }
  return { how: 'encode', howReason: obstacles.find((obstacle) => obstacle !== undefined) ?? 'alone' }
}
