import { IcebergError } from '../errors.ts'
import type { ManifestEntry } from './content-file.ts'
import type { DecodedEntry } from './entry-decoder.ts'
import type { ManifestSource } from './read-manifest.ts'

/**
 * Fills in what entries take from their manifest. It must see every entry of the manifest, once, in order: row ids are
 * counted along.
 */
export function inheritance(manifest: ManifestSource, specId: number): (entry: DecodedEntry) => ManifestEntry {
  const { sequenceNumber = 0n, addedSnapshotId } = manifest
  let nextRowId = manifest.content === 'deletes' ? undefined : manifest.firstRowId
  return (entry) => {
    entry.snapshotId ??= addedSnapshotId
    // Only what was added by the commit that wrote the manifest takes its number; in v1 all numbers are 0.
    if (entry.status === 'added' || sequenceNumber === 0n) {
      entry.sequenceNumber ??= sequenceNumber
      entry.fileSequenceNumber ??= sequenceNumber
    }
    if (entry.snapshotId === undefined) throw lacks(manifest, entry, 'snapshot id')
    if (entry.sequenceNumber === undefined) {
      if (entry.status !== 'deleted') throw lacks(manifest, entry, 'sequence number')
      entry.sequenceNumber = sequenceNumber
    }
    const { file } = entry
    file.specId = specId
    if (nextRowId === undefined) {
      // Files of a manifest without row ids have none, whatever they say: it is from before v3.
      file.firstRowId = undefined
    } else if (entry.status !== 'deleted' && file.content === 'data' && file.firstRowId === undefined) {
      file.firstRowId = nextRowId
      nextRowId += BigInt(file.recordCount)
    }
    return entry as DecodedEntry & ManifestEntry
  }
}

function lacks(manifest: ManifestSource, entry: DecodedEntry, what: string): IcebergError {
  return new IcebergError(
    'manifest_invalid',
    `${manifest.manifestPath}: the entry of ${entry.file.filePath} (${entry.status}) has no ${what}, and cannot inherit it`,
  )
}
