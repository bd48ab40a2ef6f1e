import type { ContentFile, ManifestEntry } from '../manifests/content-file.ts'
import type { Snapshot } from '../metadata/snapshot.ts'
import type { SnapshotChange } from './build-snapshot.ts'
import { partitionKey } from '../manifests/partition-key.ts'

/**
 * What an overwrite replaces. `table`: everything. `partitions`: the partitions that the new rows are in, of the same
 * spec. `files`: data files, by their paths, which must be there, or by a test.
 */
export type Replaced =
  'table' | 'partitions' | { readonly files: readonly string[] | ((entry: ManifestEntry) => boolean) }

/** How to remove what is to be replaced, from the table as it is now. */
export function removal(
  head: Snapshot | undefined,
  replaced: Replaced,
  added: readonly ContentFile[],
): Pick<SnapshotChange, 'removed' | 'removes' | 'mayRemoveFrom'> {
  const isData = (entry: ManifestEntry): boolean => entry.file.content === 'data'
  if (replaced === 'table') return head === undefined ? {} : { removes: isData }
  if (replaced === 'partitions') {
    const partitions = new Set(added.map((file) => partitionKey(file.specId, file.partition)))
    const specs = new Set(added.map((file) => file.specId))
    if (head === undefined || partitions.size === 0) return {}
    return {
      removes: (entry) => isData(entry) && partitions.has(partitionKey(entry.file.specId, entry.file.partition)),
      mayRemoveFrom: (manifest) => manifest.content === 'data' && specs.has(manifest.partitionSpecId),
    }
  }
  const { files } = replaced
  if (typeof files === 'function') return { removes: (entry) => isData(entry) && files(entry) }
  return { removed: files.map((filePath) => ({ file: { content: 'data', filePath } })) }
}
