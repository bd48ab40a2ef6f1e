import type pg from 'pg'
import {
  IcebergError,
  type Catalog,
  type CommitRequest,
  type CommitResult,
  type FolderStorage,
  type ListedFile,
  type LoadedTable,
} from '../../src/index.ts'
import { sendDrafts, temporaryDraft } from '../../src/storage/draft.ts'

/** `before`: it fails and nothing happened; `after`: it was done, and fails all the same; `down`: so do all after it. */
export type FaultMode = 'before' | 'after' | 'down'

/** Fails the n-th call that is made through it. */
export class Fault {
  calls = 0
  readonly names: string[] = []
  readonly #at: number
  readonly #mode: FaultMode

  constructor(at: number, mode: FaultMode) {
    this.#at = at
    this.#mode = mode
  }

  /** Whether every call that was to fail has been made. */
  get reached(): boolean {
    return this.calls >= this.#at
  }

  async call<T>(name: string, work: () => Promise<T>, error: () => Error): Promise<T> {
    this.calls += 1
    this.names.push(name)
    const hit = this.#mode === 'down' ? this.calls >= this.#at : this.calls === this.#at
    if (!hit) return work()
    if (this.#mode === 'after') await work()
    throw error()
  }
}

const storageError = (): Error => new IcebergError('storage_failed', 'the storage broke, as the test wants it')

export function faultyStorage(inner: FolderStorage, fault: Fault): FolderStorage {
  const call = <T>(name: string, work: () => Promise<T>): Promise<T> => fault.call(name, work, storageError)
  return {
    read: (location, range, options) => call('read', () => inner.read(location, range, options)),
    size: (location, options) => call('size', () => inner.size(location, options)),
    write: (location, content, options) => call('write', () => inner.write(location, content, options)),
    draft: (location, options) => call('draft', () => inner.draft(location, options)),
    // One after another, so that it also breaks half way.
    adopt: async (drafts, options) => {
      for (const draft of drafts) await call('adopt', () => inner.adopt([draft], options))
    },
    copy: (from, to, options) => call('copy', () => inner.copy(from, to, options)),
    exists: (location, options) => call('exists', () => inner.exists(location, options)),
    delete: (locations, options) => call('delete', () => inner.delete(locations, options)),
    now: (folder, options) => call('now', () => inner.now(folder, options)),
    folders: (folder, options) => call('folders', () => inner.folders(folder, options)),
    makeFolder: (folder, options) => call('makeFolder', () => inner.makeFolder(folder, options)),
    removeFolder: (folder, options) => call('removeFolder', () => inner.removeFolder(folder, options)),
    folderExists: (folder, options) => call('folderExists', () => inner.folderExists(folder, options)),
    list: (folder, options) => partialList(inner.list(folder, options), call),
  }
}

/** A listing that breaks does so half way: after its first file. */
async function* partialList(
  inner: AsyncIterable<ListedFile>,
  call: (name: string, work: () => Promise<void>) => Promise<void>,
): AsyncGenerator<ListedFile> {
  let n = 0
  for await (const file of inner) {
    if ((n += 1) === 2) await call('list', async () => {})
    yield file
  }
}

const connectionError = (): Error =>
  Object.assign(new Error('Connection terminated unexpectedly'), { code: 'ECONNRESET' })

/** A pool whose statements fail, on clients that are taken from it too. */
export function faultyPool(pool: pg.Pool, fault: Fault): pg.Pool {
  const statement =
    (query: (...args: unknown[]) => Promise<unknown>) =>
    (...args: unknown[]): Promise<unknown> =>
      fault.call(`sql ${String(args[0]).trim().split(/\s/)[0]}`, () => query(...args), connectionError)
  return new Proxy(pool, {
    get(target, key) {
      if (key === 'query') return statement((...args) => target.query(...(args as [string])) as Promise<unknown>)
      if (key !== 'connect') return Reflect.get(target, key) as unknown
      return async () => {
        let taken: pg.PoolClient | undefined
        const take = async (): Promise<pg.PoolClient> => (taken = await target.connect())
        const client = await fault.call('connect', take, connectionError).catch((error: unknown) => {
          taken?.release(true) // a connection that was made and lost again
          throw error
        })
        return new Proxy(client, {
          get(inner, name) {
            if (name === 'query') return statement((...args) => inner.query(...(args as [string])) as Promise<unknown>)
            // A broken connection ends its transaction: it is closed, never used again.
            const value = Reflect.get(inner, name) as unknown
            return typeof value === 'function' ? value.bind(inner) : value
          },
        })
      }
    },
  })
}

/**
 * A bucket in memory. What is in it has no path of this machine, so rows are written and read through the storage, as
 * they are on S3.
 */
export function memoryBucket(): FolderStorage & { readonly files: ReadonlyMap<string, Uint8Array> } {
  const files = new Map<string, Uint8Array>()
  const made = new Set<string>()
  const found = (location: string): Uint8Array => {
    const content = files.get(location)
    if (content === undefined) throw new IcebergError('storage_not_found', `There is no ${location}.`)
    return content
  }
  const within = (folder: string): string[] => [...files.keys()].filter((location) => location.startsWith(`${folder}/`))
  const storage: ReturnType<typeof memoryBucket> = {
    files,
    read: async (location, { offset, length } = { offset: 0, length: found(location).length }) =>
      found(location).slice(offset, offset + length),
    size: async (location) => found(location).length,
    exists: async (location) => files.has(location),
    write: async (location, content, { exclusive = false } = {}) => {
      const parts = content instanceof Uint8Array ? [content] : []
      if (!(content instanceof Uint8Array)) for await (const part of content) parts.push(part)
      if (exclusive && files.has(location)) throw new IcebergError('storage_exists', `There is a ${location}.`)
      files.set(location, Buffer.concat(parts))
    },
    draft: (location) => temporaryDraft(location),
    adopt: (drafts) => sendDrafts(storage, drafts),
    copy: async (from, to) => void files.set(to, found(from)),
    delete: async (locations) => ({ failed: [], missing: locations.filter((location) => !files.delete(location)) }),
    now: async () => new Date(),
    async *list(folder) {
      for (const location of within(folder)) yield { location, size: found(location).length, modifiedAt: new Date(0) }
    },
    folders: async (folder) => [
      ...new Set(within(folder).map((at) => at.slice(folder.length + 1).split('/')[0] ?? '')),
    ],
    makeFolder: async (folder) => void made.add(folder),
    removeFolder: async (folder) => void made.delete(folder),
    folderExists: async (folder) => made.has(folder) || within(folder).length > 0,
  }
  return storage
}

/** What a commit is answered though it was applied. `repeated`: what a second copy of the request is answered. */
export const denials = ['repeated', 'conflict', 'unavailable', 'rejected'] as const
export type Denial = (typeof denials)[number]

/** A catalog that says of its n-th commit that it was not applied, but it was; `after` is done before it says so. */
export function denying(
  catalog: Catalog,
  at: number,
  denial: Denial,
  after: () => Promise<void> = async () => {},
): Catalog {
  let n = 0
  const commit = async (table: LoadedTable, request: CommitRequest): Promise<CommitResult> => {
    const result = await catalog.commit(table, request)
    if ((n += 1) !== at || result.outcome !== 'applied') return result
    await after()
    if (denial === 'repeated') return catalog.commit(table, request)
    return { outcome: 'not_applied', why: denial, error: new IcebergError('commit_conflict', 'denied by the test') }
  }
  return withMember(catalog, 'commit', commit)
}

/** The same catalog with one member replaced. */
export function withMember<K extends keyof Catalog>(catalog: Catalog, name: K, member: Catalog[K]): Catalog {
  return new Proxy(catalog, {
    get(target, key) {
      if (key === name) return member
      const value = Reflect.get(target, key) as unknown
      return typeof value === 'function' ? (value.bind(target) as unknown) : value
    },
  })
}
