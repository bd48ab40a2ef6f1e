import type { TableMetadata } from '../metadata/table-metadata.ts'
import { propertyOf, tableProperties } from '../properties.ts'
import { below, locationKey, withoutSlashAtEnd } from '../storage/location.ts'

/** The folders that a table has its files in: its location, and where its properties put data and metadata. */
export function ownLocations(metadata: Pick<TableMetadata, 'location' | 'properties'>): string[] {
  const { dataPath, objectStoragePath, folderStoragePath, metadataPath } = tableProperties
  const set = [dataPath, objectStoragePath, folderStoragePath, metadataPath]
  const paths = [metadata.location, ...set.map((property) => propertyOf(metadata, property))]
  return [...new Set(paths.flatMap((path) => (path === undefined || path === '' ? [] : [withoutSlashAtEnd(path)])))]
}

/** The folder that the table's metadata is in. */
export function metadataFolderOf(metadata: Pick<TableMetadata, 'location' | 'properties'>): string {
  return propertyOf(metadata, tableProperties.metadataPath) ?? below(metadata.location, 'metadata')
}

/** Whether a location is below one of the folders. Of a location that no storage here reaches: no. */
export function insideAny(folders: readonly string[]): (location: string) => boolean {
  const prefixes = folders.flatMap((folder) => {
    const key = keyOf(folder)
    return key === undefined ? [] : [`${withoutSlashAtEnd(key)}/`]
  })
  const spelled = folders.map((folder) => `${withoutSlashAtEnd(folder)}/`)
  return (location) => {
    // Most files are spelled as their folder is. A path with dots in it may lead out again.
    if (!location.includes('/.') && spelled.some((prefix) => location.startsWith(prefix))) return true
    const key = keyOf(location)
    return key !== undefined && prefixes.some((prefix) => key.startsWith(prefix))
  }
}

/** Most locations of object stores are spelled as they are compared. */
function isOwnKey(location: string): boolean {
  return location.startsWith('s3://') && location.includes('/', 's3://'.length)
}

function keyOf(location: string): string | undefined {
  try {
    return locationKey(location)
  } catch {
    return undefined
  }
}

/** What files are compared by: one text for every spelling of a location; others, such as hdfs:, as they are. */
export function fileKeyOf(location: string): string {
  return isOwnKey(location) ? location : (keyOf(location) ?? location)
}
