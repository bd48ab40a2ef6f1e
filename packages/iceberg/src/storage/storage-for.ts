import { IcebergError } from '../errors.ts'
import { LocalStorage } from './local-storage.ts'
import { locationKey, parseLocation } from './location.ts'
import { s3CredentialsFrom, s3OptionsFrom, type S3Credentials, type S3Options } from './s3-client.ts'
import { S3Storage } from './s3-storage.ts'
import type { ByteRange, FailedDelete, FolderStorage, ListedFile } from './storage.ts'

export interface StorageOptions {
  /** Asked for fresh credentials before those in the properties expire, such as a catalog that hands them out. */
  refreshCredentials?: () => Promise<Readonly<Record<string, string>>>
  /** What the properties do not say. */
  s3?: S3Options
}

/** The storage that a location is in, with Iceberg's own properties (`s3.endpoint`, `s3.access-key-id`, …). */
export function storageFor(
  location: string,
  properties: Readonly<Record<string, string>> = {},
  { refreshCredentials, s3 }: StorageOptions = {},
): FolderStorage {
  if (parseLocation(location).scheme === 'file') return new LocalStorage()
  const options = { ...s3, ...s3OptionsFrom(properties) }
  if (refreshCredentials !== undefined)
    options.credentials = refreshed(s3CredentialsFrom(properties), refreshCredentials)
  return new S3Storage(options)
}

// The SDK asks the function whenever the credentials it has are about to expire; the first answer is already here.
function refreshed(
  first: S3Credentials | undefined,
  refresh: () => Promise<Readonly<Record<string, string>>>,
): () => Promise<S3Credentials> {
  let held = first
  return async () => {
    if (held !== undefined) {
      const credentials = held
      held = undefined
      return credentials
    }
    const credentials = s3CredentialsFrom(await refresh())
    if (credentials === undefined) {
      throw new IcebergError('storage_denied', 'The refreshed credentials hold no s3.access-key-id.')
    }
    return credentials
  }
}

/** Properties that hold below a prefix of locations, such as a REST catalog's storage-credentials. */
export interface PrefixedProperties {
  readonly prefix: string
  readonly properties: Readonly<Record<string, string>>
}

export interface RoutingOptions {
  s3?: S3Options
  /** Asked again before credentials expire: all of them, with their prefixes. */
  refresh?: () => Promise<readonly PrefixedProperties[]>
}

/** One storage for every location a table refers to: each by its scheme, and by the longest prefix with properties. */
export class RoutedStorage implements FolderStorage {
  readonly #properties: Readonly<Record<string, string>>
  readonly #prefixed: readonly PrefixedProperties[]
  readonly #options: RoutingOptions
  readonly #opened = new Map<string, FolderStorage>()

  constructor(
    properties: Readonly<Record<string, string>> = {},
    prefixed: readonly PrefixedProperties[] = [],
    options: RoutingOptions = {},
  ) {
    this.#properties = properties
    this.#prefixed = prefixed
    this.#options = options
  }

  read(location: string, range?: ByteRange): Promise<Uint8Array> {
    return this.#at(location).read(location, range)
  }

  size(location: string): Promise<number> {
    return this.#at(location).size(location)
  }

  write(
    location: string,
    content: Uint8Array | AsyncIterable<Uint8Array>,
    options?: { exclusive?: boolean },
  ): Promise<void> {
    return this.#at(location).write(location, content, options)
  }

  list(folder: string): AsyncIterable<ListedFile> {
    return this.#at(folder).list(folder)
  }

  async delete(locations: readonly string[]): Promise<FailedDelete[]> {
    const byStorage = new Map<FolderStorage, string[]>()
    for (const location of locations) {
      const storage = this.#at(location)
      const ofStorage = byStorage.get(storage)
      if (ofStorage === undefined) byStorage.set(storage, [location])
      else ofStorage.push(location)
    }
    const failed: FailedDelete[] = []
    for (const [storage, ofStorage] of byStorage) failed.push(...(await storage.delete(ofStorage)))
    return failed
  }

  exists(location: string): Promise<boolean> {
    return this.#at(location).exists(location)
  }

  folders(folder: string): Promise<string[]> {
    return this.#at(folder).folders(folder)
  }

  makeFolder(folder: string): Promise<void> {
    return this.#at(folder).makeFolder(folder)
  }

  removeFolder(folder: string): Promise<void> {
    return this.#at(folder).removeFolder(folder)
  }

  folderExists(folder: string): Promise<boolean> {
    return this.#at(folder).folderExists(folder)
  }

  #at(location: string): FolderStorage {
    const { scheme } = parseLocation(location)
    const prefixed = longestPrefix(this.#prefixed, location)
    const name = `${scheme} ${prefixed?.prefix ?? ''}`
    const storage = this.#opened.get(name) ?? this.#open(location, prefixed)
    this.#opened.set(name, storage)
    return storage
  }

  #open(location: string, prefixed: PrefixedProperties | undefined): FolderStorage {
    const { s3, refresh } = this.#options
    return storageFor(
      location,
      { ...this.#properties, ...prefixed?.properties },
      {
        ...(s3 !== undefined && { s3 }),
        ...(refresh !== undefined && {
          refreshCredentials: async () => ({
            ...this.#properties,
            ...longestPrefix(await refresh(), location)?.properties,
          }),
        }),
      },
    )
  }
}

/** The entry whose prefix is the longest that the location begins with, whatever its scheme is called. */
export function longestPrefix(
  prefixed: readonly PrefixedProperties[],
  location: string,
): PrefixedProperties | undefined {
  const key = locationKey(location)
  let best: PrefixedProperties | undefined
  for (const entry of prefixed) {
    if (startsWith(key, entry.prefix) && entry.prefix.length > (best?.prefix.length ?? -1)) best = entry
  }
  return best
}

function startsWith(key: string, prefix: string): boolean {
  // A catalog may say only "s3" for everything there.
  if (/^(s3|s3a|s3n)$/i.test(prefix)) return key.startsWith('s3:')
  try {
    return key.startsWith(locationKey(prefix))
  } catch {
    return false // credentials for a storage that is not used here
  }
}
