export { LocalStorage } from './local-storage.ts'
export { below, fileName, locationKey, parseLocation, withoutSlashAtEnd, type Location } from './location.ts'
export type { S3Credentials, S3Options } from './s3-client.ts'
export { S3Storage } from './s3-storage.ts'
export { Staging, type FileToStage, type Staged, type StagingOptions } from './staging.ts'
export {
  longestPrefix,
  RoutedStorage,
  storageFor,
  type PrefixedProperties,
  type RoutingOptions,
  type StorageOptions,
} from './storage-for.ts'
export type {
  ByteRange,
  CallOptions,
  Deleted,
  Draft,
  FailedDelete,
  FolderStorage,
  ListedFile,
  Storage,
  WriteOptions,
} from './storage.ts'
