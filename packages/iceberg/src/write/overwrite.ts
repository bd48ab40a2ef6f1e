import type { LoadedTable } from '../catalogs/catalog.ts'
import type { ContentFile, ManifestEntry } from '../manifests/content-file.ts'
import type { Snapshot } from '../metadata/snapshot.ts'
import type { SnapshotChange } from './build-snapshot.ts'
import { entriesOf, manifestsOf } from '../snapshot/live-files.ts'
import { partitionKey } from '../manifests/partition-key.ts'
import { notLive } from './position-deletes.ts'

/**
 * What an overwrite replaces. `table`: everything. `partitions`: the partitions that the new rows are in, of the same
 * spec. `files`: data files, by their paths, which must be there, or by a test.
 */
export type Replaced =
  'table' | 'partitions' | { readonly files: readonly string[] | ((entry: ManifestEntry) => boolean) }

/** How to remove what is to be replaced, from the table as it is now. */
export async function removal(
  table: LoadedTable,
  head: Snapshot | undefined,
  replaced: Replaced,
  added: readonly ContentFile[],
): Promise<Pick<SnapshotChange, 'removes' | 'mayRemoveFrom'>> {
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
  await assertLive(table, head, files)
  const paths = new Set(files)
  if (paths.size === 0) return {}
  return { removes: (entry) => isData(entry) && paths.has(entry.file.filePath) }
}

async function assertLive(table: LoadedTable, head: Snapshot | undefined, files: readonly string[]): Promise<void> {
  const missing = new Set(files)
  for (const manifest of await manifestsOf(table, head)) {
    if (manifest.content !== 'data' || missing.size === 0) continue
    for (const { file } of await entriesOf(table, manifest, { statistics: false })) missing.delete(file.filePath)
  }
  for (const path of missing) throw notLive(table, path)
}
