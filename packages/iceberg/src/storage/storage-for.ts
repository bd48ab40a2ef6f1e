import { IcebergError } from '../errors.ts'
import { LocalStorage } from './local-storage.ts'
import { partsOf } from './each.ts'
import { locationKey, parseLocation } from './location.ts'
import { s3CredentialsFrom, s3OptionsFrom, type S3Credentials, type S3Options } from './s3-client.ts'
import { S3Storage } from './s3-storage.ts'
import type {
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
  if (properties['s3.remote-signing-enabled']?.toLowerCase() === 'true' && options.credentials === undefined) {
    throw remotelySigned(location)
  }
  const first = s3CredentialsFrom(properties)
  if (first !== undefined && refreshCredentials !== undefined)
    options.credentials = refreshed(first, refreshCredentials)
  return new S3Storage(options)
}

function remotelySigned(location: string): IcebergError {
  return new IcebergError(
    'storage_unsupported',
    `The catalog wants to sign every request to ${location} itself (s3.remote-signing-enabled), which cannot be done here. ` +
      'Let it hand out credentials (vended credentials), or give credentials of your own.',
    { details: { location } },
  )
}

// The SDK asks the function whenever the credentials it has are about to expire; the first answer is already here.
function refreshed(
  first: S3Credentials,
  refresh: () => Promise<Readonly<Record<string, string>>>,
): () => Promise<S3Credentials> {
  let held: S3Credentials | undefined = first
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

  async read(location: string, range?: ByteRange, options?: CallOptions): Promise<Uint8Array> {
    return this.#at(location).read(location, range, options)
  }

  async size(location: string, options?: CallOptions): Promise<number> {
    return this.#at(location).size(location, options)
  }

  async write(
    location: string,
    content: Uint8Array | AsyncIterable<Uint8Array>,
    options?: WriteOptions,
  ): Promise<void> {
    return this.#at(location).write(location, content, options)
  }

  async draft(location: string, options?: CallOptions): Promise<Draft> {
    return this.#at(location).draft(location, options)
  }

  async adopt(drafts: readonly Draft[], options?: CallOptions): Promise<void> {
    for (const [storage, ofStorage] of groupedBy(drafts, ({ location }) => this.#at(location))) {
      await storage.adopt(ofStorage, options)
    }
  }

  async copy(from: string, to: string, options: CallOptions = {}): Promise<void> {
    const [source, target] = [this.#at(from), this.#at(to)]
    if (source === target) return source.copy(from, to, options)
    const size = await source.size(from, options)
    await target.write(to, contentOf(source, from, size, options), options)
  }

  list(folder: string, options?: CallOptions): AsyncIterable<ListedFile> {
    const storage = this.#tryAt(folder)
    return storage instanceof Error ? failing(storage) : storage.list(folder, options)
  }

  async delete(locations: readonly string[], options?: CallOptions): Promise<Deleted> {
    const failed: FailedDelete[] = []
    const missing: string[] = []
    for (const [storage, ofStorage] of groupedBy(locations, (location) => this.#tryAt(location))) {
      if (storage instanceof Error) {
        for (const location of ofStorage) failed.push({ location, error: storage })
        continue
      }
      const deleted = await storage.delete(ofStorage, options)
      for (const each of deleted.failed) failed.push(each)
      for (const location of deleted.missing) missing.push(location)
    }
    return { failed, missing }
  }

  async exists(location: string, options?: CallOptions): Promise<boolean> {
    return this.#at(location).exists(location, options)
  }

  async now(folder: string, options?: CallOptions): Promise<Date> {
    return this.#at(folder).now(folder, options)
  }

  async folders(folder: string, options?: CallOptions): Promise<string[]> {
    return this.#at(folder).folders(folder, options)
  }

  async makeFolder(folder: string, options?: CallOptions): Promise<void> {
    return this.#at(folder).makeFolder(folder, options)
  }

  async removeFolder(folder: string, options?: CallOptions): Promise<void> {
    return this.#at(folder).removeFolder(folder, options)
  }

  async folderExists(folder: string, options?: CallOptions): Promise<boolean> {
    return this.#at(folder).folderExists(folder, options)
  }

  #tryAt(location: string): FolderStorage | Error {
    try {
      return this.#at(location)
    } catch (error) {
      return error as Error
    }
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
    return storageFor(location, merged(this.#properties, prefixed?.properties), {
      ...(s3 !== undefined && { s3 }),
      ...(refresh !== undefined && {
        refreshCredentials: async () => merged(this.#properties, longestPrefix(await refresh(), location)?.properties),
      }),
    })
  }
}

// eslint-disable-next-line require-yield
async function* failing(error: Error): AsyncGenerator<ListedFile> {
  throw error
}

function groupedBy<T, K>(items: readonly T[], keyOf: (item: T) => K): Map<K, T[]> {
  const groups = new Map<K, T[]>()
  for (const item of items) {
    const key = keyOf(item)
    const group = groups.get(key)
    if (group === undefined) groups.set(key, [item])
    else group.push(item)
  }
  return groups
}

const copyPartBytes = 16 * 1024 * 1024

/**
 * A file in parts, for a copy between two storages.
 * Limit: a file that is replaced by one of the same size meanwhile is not noticed. Files of tables never are.
 */
async function* contentOf(
  storage: Storage,
  location: string,
  size: number,
  options: CallOptions,
): AsyncGenerator<Uint8Array> {
  for (const part of partsOf(0, size, copyPartBytes)) yield await storage.read(location, part, options)
}

const credentialKeys = ['access-key-id', 'secret-access-key', 'session-token', 'session-token-expires-at-ms']

/** Credentials are taken whole: a key of one pair with the session token or the end of another is good for nothing. */
function merged(base: Readonly<Record<string, string>>, over: Readonly<Record<string, string>> = {}) {
  const own = { ...base }
  if ('s3.access-key-id' in over) for (const key of credentialKeys) delete own[`s3.${key}`]
  return { ...own, ...over }
}

/** The entry whose prefix is the longest that the location begins with, whatever its scheme is called. */
export function longestPrefix(
  prefixed: readonly PrefixedProperties[],
  location: string,
): PrefixedProperties | undefined {
  const key = locationKey(location)
  let best: { entry: PrefixedProperties; length: number } | undefined
  for (const entry of prefixed) {
    const prefix = prefixKey(entry.prefix)
    if (prefix === undefined || !key.startsWith(prefix)) continue
    if (best === undefined || prefix.length > best.length) best = { entry, length: prefix.length }
  }
  return best?.entry
}

/** A prefix as it begins the keys of locations; undefined for a storage that is not used here. */
function prefixKey(prefix: string): string | undefined {
  // A catalog may say only "s3" for everything there.
  if (/^s3[an]?(:\/*)?$/i.test(prefix)) return 's3:'
  try {
    return locationKey(prefix)
  } catch {
    return undefined
  }
}
