import { randomUUID } from 'node:crypto'
import { IcebergError } from '../errors.ts'
import type { TableMetadata } from '../metadata/table-metadata.ts'
import { propertyOf, tableProperties } from '../properties.ts'
import { below } from '../storage/location.ts'
import { murmur3 } from '../values/murmur3.ts'

/** Where a new file of rows goes, by the table's properties. `partition` is its folders, empty when there are none. */
export function newDataLocation(metadata: TableMetadata, partition: string, extension = '.parquet'): string {
  const { location } = metadata
  const provider = propertyOf(metadata, tableProperties.locationProvider)
  if (provider !== undefined) {
    throw new IcebergError(
      'metadata_unsupported',
      `The table at ${location} names its files by ${provider} (${tableProperties.locationProvider.key}), which only Java can run; ` +
        'this package cannot write to it',
    )
  }
  const folder =
    propertyOf(metadata, tableProperties.dataPath) ??
    propertyOf(metadata, tableProperties.objectStoragePath) ??
    propertyOf(metadata, tableProperties.folderStoragePath) ??
    below(location, 'data')
  const name = `00000-0-${randomUUID()}-00001${extension}`
  if (!propertyOf(metadata, tableProperties.objectStorageEnabled)) {
    return partition === '' ? below(folder, name) : below(folder, partition, name)
  }
  const withFolders = partition !== '' && propertyOf(metadata, tableProperties.objectStoragePartitionedPaths)
  const file = withFolders ? `${partition}/${name}` : name
  return withFolders || partition === ''
    ? below(folder, ...entropy(file), file)
    : below(folder, `${entropy(file).join('')}-${file}`)
}

/** Folders made of a hash, so that object stores spread the files: 4, 4, 4 and 8 of its bits. */
function entropy(file: string): string[] {
  const bits = (murmur3(Buffer.from(file)) & 0xfffff).toString(2).padStart(20, '0')
  return [bits.slice(0, 4), bits.slice(4, 8), bits.slice(8, 12), bits.slice(12)]
}

/** A new file in the table's metadata folder. */
export function metadataLocationOf(metadata: TableMetadata, name: string): string {
  return below(propertyOf(metadata, tableProperties.metadataPath) ?? below(metadata.location, 'metadata'), name)
}
