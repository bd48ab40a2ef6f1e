import { IcebergError } from '../errors.ts'
import type { ManifestWriterOptions, NewManifestEntry } from './write-manifest.ts'

/** Refuses an entry that readers would refuse, or worse, misread. */
export function checkEntry(options: ManifestWriterOptions, entry: NewManifestEntry): void {
  const { file } = entry
  const fail = (message: string): never => {
    throw new IcebergError('manifest_invalid', `${file.filePath} cannot be put in a manifest: ${message}`)
  }
  if (options.formatVersion === 1 && options.content === 'deletes') fail('format version 1 has no delete files')
  if ((file.content === 'data') !== (options.content === 'data')) {
    fail(`a manifest of ${options.content} cannot hold ${file.content}`)
  }
  if (file.specId !== options.partitionSpec.specId) {
    fail(`it has partition spec ${file.specId}, and the manifest has ${options.partitionSpec.specId}`)
  }
  if (file.partition.length !== options.partitionSpec.fields.length) {
    fail(`it has ${file.partition.length} partition values for ${options.partitionSpec.fields.length} fields`)
  }
  if (file.keyMetadata !== undefined) fail('it is encrypted')
  if (file.content === 'equality-deletes' && (file.equalityIds ?? []).length === 0) fail('it has no equality ids')
  checkDeletionVector(options, entry, fail)
}

function checkDeletionVector(
  options: ManifestWriterOptions,
  { status, file }: NewManifestEntry,
  fail: (message: string) => never,
): void {
  const isVector = file.fileFormat.toLowerCase() === 'puffin'
  if (isVector) {
    if (options.formatVersion < 3) fail('deletion vectors need format version 3')
    const { referencedDataFile, contentOffset, contentSizeInBytes } = file
    if (referencedDataFile === undefined || contentOffset === undefined || contentSizeInBytes === undefined) {
      fail('a deletion vector needs its data file, its offset and its size')
    }
  } else if (file.content === 'position-deletes' && status === 'added' && options.formatVersion >= 3) {
    fail('format version 3 takes new position deletes as deletion vectors only')
  }
}
