import { randomBytes } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import {
  tableName,
  type Catalog,
  type CommitRequest,
  type CommitResult,
  type LoadedTable,
  type TableIdentifier,
} from '../catalogs/catalog.ts'
import { IcebergError } from '../errors.ts'
import type { MetadataRequirement, MetadataUpdate } from '../metadata/update.ts'
import { within } from '../storage/within.ts'
import { defaultRetrySettings, pauseMs, retrySettingsOf, type RetrySettings } from './retry-settings.ts'
import { isRepeatable, isSameMetadata, SentCommits, type SentCommit } from './sent-commits.ts'

// Load, build, commit; on a conflict all of it again, from the fresh table. The outcomes are three:
//   applied      it is part of the table: the catalog said so, or the fresh table shows one of the tries
//   not_applied  for certain: the catalog said so, and the fresh table neither shows nor would take one of the tries. What
//                was built is removed
//   unknown      nobody can tell now; nothing is removed, and nothing else was tried
// "Not applied" alone is not believed: a gateway that repeats a request gets a conflict for the second copy. So every
// earlier try is looked for before building again, and before any file is removed.
// A try of unknown outcome is looked for in the table. While it is not there, and the metadata is still the very one it
// was built on, the same request is sent again: it carries the same snapshot and demands the same base, so it cannot be
// applied twice. Once anything has changed it is built again, from the fresh table; the files of such a try are kept.

/** What is to be committed, made for one state of the table. */
export interface BuiltCommit {
  readonly requirements: readonly MetadataRequirement[]
  readonly updates: readonly MetadataUpdate[]
  /** The files it relies on that were made for it: removed when it is certainly not applied. */
  readonly files: readonly string[]
  /** Whether the table shows that it was applied. Default: by its snapshots, else by the effect of its updates. */
  readonly isApplied?: (metadata: LoadedTable['metadata']) => boolean
}

/**
 * Makes a commit for the table as it is now, or undefined when there is nothing left to do. Called again after every
 * conflict; a file may be used by several tries if each lists it. When it throws, it has removed its files of this try.
 */
export type BuildCommit = (table: LoadedTable, attempt: number) => Promise<BuiltCommit | undefined>

export interface CommitOptions {
  readonly guard?: CommitRequest['guard']
  /** JDBC only: the transaction that every try is committed in, with the guard. */
  readonly inTransaction?: CommitRequest['inTransaction']
  /** Ends the tries, and the search for one of unknown outcome. A request that is under way is waited for. */
  readonly signal?: AbortSignal
  /** Of a table that was just loaded, to spare loading it again for the first try. */
  readonly loaded?: LoadedTable
  /** Refuses another table of the same name. Default: that of the table that is loaded first. */
  readonly tableUuid?: string | undefined
  /** Waits between tries. */
  readonly pause?: (ms: number) => Promise<void>
}

export type CommitOutcome =
  | {
      readonly outcome: 'applied'
      readonly table: LoadedTable
      readonly attempts: number
      /** The try that was applied. */
      readonly built: BuiltCommit
    }
  | {
      readonly outcome: 'not_applied'
      readonly why: 'conflict' | 'unavailable' | 'refused' | 'rejected' | 'nothing_to_do'
      readonly error?: Error
      readonly attempts: number
      /** Files that were to be removed and could not be. */
      readonly leftOver: readonly string[]
    }
  | { readonly outcome: 'unknown'; readonly error: Error; readonly attempts: number; readonly files: readonly string[] }

/** Commits what `build` makes, as often and as patiently as the table's own properties say. */
export async function commitTable(
  catalog: Catalog,
  identifier: TableIdentifier,
  build: BuildCommit,
  options: CommitOptions = {},
): Promise<CommitOutcome> {
  const tries = new Tries(catalog, identifier, build, options)
  try {
    return await tries.run()
  } catch (error) {
    return await tries.end(error as Error, () => {
      throw error
    })
  }
}

type NotApplied = Extract<CommitOutcome, { outcome: 'not_applied' }>

interface Failure {
  readonly failed: true
  readonly why: 'conflict' | 'unavailable' | 'refused' | 'rejected'
  readonly error: Error
  readonly retryAfterMs?: number
}

/** What a look at the table takes at most when there is no time left, or when the caller has called it off. */
const lastLookMs = 1000
const cancelledLookMs = 500
/** Timers that are longer fire at once. */
const maxTimerMs = 2 ** 31 - 1

class Tries {
  readonly #catalog: Catalog
  readonly #identifier: TableIdentifier
  readonly #build: BuildCommit
  readonly #options: CommitOptions
  readonly #startedAt = performance.now()
  readonly #sent = new SentCommits()
  #settings: RetrySettings = defaultRetrySettings
  #attempts = 0
  #loaded: LoadedTable | undefined
  #tableUuid: string | undefined

  constructor(catalog: Catalog, identifier: TableIdentifier, build: BuildCommit, options: CommitOptions) {
    this.#catalog = catalog
    this.#identifier = identifier
    this.#build = build
    this.#options = options
    this.#loaded = options.loaded
    this.#tableUuid = options.tableUuid
  }

  async run(): Promise<CommitOutcome> {
    for (;;) {
      this.#options.signal?.throwIfAborted()
      this.#attempts += 1
      const result = await this.#tryOnce()
      if (!('failed' in result)) return result
      if (!(await this.#waitToTryAgain(result))) return this.#notApplied(result.why, result.error)
    }
  }

  async #tryOnce(): Promise<CommitOutcome | Failure> {
    const table = await this.#load()
    if ('failed' in table) return table
    const earlier = this.#sent.appliedIn(table)
    if (earlier !== undefined) return this.#applied(table, earlier)
    const built = await this.#build(table, this.#attempts)
    if (built === undefined) return this.#notApplied('nothing_to_do')
    const { requirements, updates } = built
    const { guard, inTransaction } = this.#options
    const request = {
      requirements,
      updates,
      idempotencyKey: uuidV7(),
      ...(guard !== undefined && { guard }),
      ...(inTransaction !== undefined && { inTransaction }),
    }
    const sent = this.#sent.add(table, built, request)
    const result = await this.#send(table, request)
    if (result.outcome === 'unknown') return this.#resolve(sent, result.error)
    if (result.outcome === 'applied') return this.#applied(result.table, sent)
    const { why, error, retryAfterMs } = result
    sent.final = result.final === true
    sent.state = why === 'refused' || result.neverSent === true ? 'refused' : 'answered'
    return { failed: true, why, error, ...(retryAfterMs !== undefined && { retryAfterMs }) }
  }

  async #load(): Promise<LoadedTable | Failure> {
    try {
      const first = this.#attempts === 1 ? this.#loaded : undefined
      const table = first ?? (await this.#loadFresh())
      this.#assertSameTable(table)
      this.#loaded = table
      this.#settings = retrySettingsOf(table.metadata)
      return table
    } catch (error) {
      if (!passes(error)) throw error
      return { failed: true, why: 'unavailable', error: error as Error }
    }
  }

  /** A catalog that does not heed the signal is not waited for. */
  #loadFresh(): Promise<LoadedTable> {
    const { signal } = this.#options
    const known = this.#loaded && { known: this.#loaded }
    if (signal === undefined) return this.#catalog.loadTable(this.#identifier, known)
    return within(signal, () => this.#catalog.loadTable(this.#identifier, { ...known, signal }))
  }

  /** What was made for a table that was dropped must not go into another that has its name now. */
  #assertSameTable({ metadata: { tableUuid } }: LoadedTable): void {
    this.#tableUuid ??= tableUuid
    if (tableUuid === this.#tableUuid) return
    const table = tableName(this.#identifier)
    throw new IcebergError(
      'requirement_failed',
      `${table} is another table by now: it was dropped, and made anew. Load it again.`,
      { details: { table, expected: this.#tableUuid, found: tableUuid } },
    )
  }

  /** A catalog throws when its arguments are wrong, before it does anything. Of any other error nobody can tell. */
  async #send(table: LoadedTable, request: CommitRequest): Promise<CommitResult> {
    try {
      return await this.#catalog.commit(table, request)
    } catch (error) {
      if (error instanceof IcebergError) return { outcome: 'not_applied', why: 'rejected', error, neverSent: true }
      return { outcome: 'unknown', error: error as Error }
    }
  }

  /**
   * Looks for a request of unknown outcome as `commit.status-check.*` say, within the time of the commit. The first look
   * is at once; before each of the others it waits, and sends the request again if nothing has changed.
   */
  async #resolve(sent: SentCommit, error: Error): Promise<CommitOutcome | Failure> {
    const { statusCheck } = this.#settings
    const startedAt = performance.now()
    let last = error
    for (let looks = 0; looks <= statusCheck.retries; looks++) {
      const pause = looks === 0 ? 0 : pauseMs(statusCheck, looks)
      if (performance.now() - startedAt + pause > statusCheck.totalMs || this.#isOver(pause)) break
      if (pause > 0) await this.#pause(pause)
      if (this.#options.signal?.aborted === true) break
      const now = await this.#look()
      if (!isTable(now)) continue
      const applied = this.#sent.appliedIn(now)
      if (applied !== undefined) return this.#applied(now, applied)
      if (!isRepeatable(sent.request)) continue
      if (!isSameMetadata(sent.base, now)) return { failed: true, why: 'conflict', error: last }
      if (looks === 0) continue
      const again = await this.#sendAgain(now, sent)
      if (again.outcome === 'applied') return this.#applied(again.table, sent)
      last = again.error
      // Refused now says nothing about the first one.
      if (again.outcome === 'not_applied' && again.why === 'refused') break
    }
    const now = await this.#look()
    const applied = isTable(now) ? this.#sent.appliedIn(now) : undefined
    if (isTable(now) && applied !== undefined) return this.#applied(now, applied)
    return sent.state === 'overtaken' ? { failed: true, why: 'conflict', error: last } : this.#unknown(last)
  }

  async #sendAgain(now: LoadedTable, { request }: SentCommit): Promise<CommitResult> {
    const { signal } = this.#options
    if (signal === undefined) return this.#send(now, request)
    try {
      return await within(signal, () => this.#send(now, request))
    } catch (error) {
      return { outcome: 'unknown', error: error as Error }
    }
  }

  /** The table as it is now; undefined when it cannot be had in time. */
  async #look(): Promise<LoadedTable | 'gone' | undefined> {
    const { signal } = this.#options
    const cancelled = signal?.aborted === true
    const rest = this.#settings.totalMs - (performance.now() - this.#startedAt)
    const longest = Math.min(maxTimerMs, Math.ceil(Math.max(lastLookMs, rest)))
    const limit = AbortSignal.timeout(cancelled ? cancelledLookMs : longest)
    const until = signal === undefined || cancelled ? limit : AbortSignal.any([limit, signal])
    try {
      const table = await within(until, () => this.#catalog.loadTable(this.#identifier, { signal: until }))
      return this.#tableUuid === undefined || table.metadata.tableUuid === this.#tableUuid ? table : 'gone'
    } catch (error) {
      return error instanceof IcebergError && error.code === 'table_not_found' ? 'gone' : undefined
    }
  }

  #isOver(pause: number): boolean {
    return performance.now() - this.#startedAt + pause > this.#settings.totalMs
  }

  /** False when there is no use in it, or no time left. */
  async #waitToTryAgain({ why, error, retryAfterMs = 0 }: Failure): Promise<boolean> {
    if (why === 'refused' || why === 'rejected') return false
    if (this.#attempts > this.#settings.retries) return false
    const pause = Math.max(retryAfterMs, pauseMs(this.#settings, this.#attempts), retryAfterOf(error))
    if (this.#isOver(pause)) return false
    await this.#pause(pause)
    return true
  }

  /** The signal only ends the pause: who goes on looks at it. */
  async #pause(ms: number): Promise<void> {
    const { pause, signal } = this.#options
    if (pause !== undefined) return pause(ms)
    await sleep(Math.min(maxTimerMs, ms), undefined, signal === undefined ? {} : { signal }).catch(() => {})
  }

  async #applied(table: LoadedTable, applied: SentCommit): Promise<CommitOutcome> {
    this.#sent.noteTable(table.metadata) // having this try, it may no longer take the others
    await this.#remove(this.#sent.removable(applied))
    return { outcome: 'applied', table, attempts: this.#attempts, built: applied.built }
  }

  #notApplied(why: NotApplied['why'], error?: Error): Promise<CommitOutcome> {
    return this.end(error, (leftOver) => ({
      outcome: 'not_applied',
      why,
      attempts: this.#attempts,
      leftOver,
      ...(error !== undefined && { error }),
    }))
  }

  /** Ends without another try: as `otherwise` says, unless one of the tries was applied after all, or may have been. */
  async end(error: Error | undefined, otherwise: (leftOver: string[]) => CommitOutcome): Promise<CommitOutcome> {
    if (this.#sent.mayBeApplied) {
      const now = await this.#look()
      const applied = isTable(now) ? this.#sent.appliedIn(now) : undefined
      if (isTable(now) && applied !== undefined) return this.#applied(now, applied)
      if (now === undefined || this.#sent.mayStillApply) return this.#unknown(error)
      // A table that was dropped may come back with the files it had.
      if (now === 'gone') return otherwise(this.#sent.removable(undefined))
    }
    return otherwise(await this.#remove(this.#sent.removable(undefined)))
  }

  #unknown(cause: Error | undefined): CommitOutcome {
    const table = tableName(this.#identifier)
    const error = new IcebergError(
      'commit_unknown',
      `Whether ${table} was changed could not be found out: ${cause?.message ?? 'it could not be loaded.'} ` +
        'Its new files are kept; look for its snapshot.',
      { details: { table }, cause },
    )
    return { outcome: 'unknown', error, attempts: this.#attempts, files: this.#sent.files }
  }

  /** Returns what could not be removed. Never fails. */
  async #remove(files: readonly string[]): Promise<string[]> {
    if (files.length === 0 || this.#loaded === undefined) return [...files]
    try {
      const { failed } = await this.#loaded.storage.delete(files)
      return failed.map(({ location }) => location)
    } catch {
      return [...files]
    }
  }
}

function isTable(found: LoadedTable | 'gone' | undefined): found is LoadedTable {
  return typeof found === 'object'
}

/** Errors of a load that may be gone at the next try. A metadata file can vanish when others commit meanwhile. */
function passes(error: unknown): boolean {
  return (
    error instanceof IcebergError && ['catalog_unavailable', 'storage_failed', 'storage_not_found'].includes(error.code)
  )
}

function retryAfterOf(error: Error): number {
  const ms = error instanceof IcebergError ? error.details['retryAfterMs'] : undefined
  return typeof ms === 'number' ? ms : 0
}

/** Time-ordered, as REST catalogs want idempotency keys. */
function uuidV7(): string {
  const bytes = randomBytes(16)
  bytes.writeUIntBE(Date.now(), 0, 6)
  bytes.writeUInt8(((bytes[6] ?? 0) & 0x0f) | 0x70, 6)
  bytes.writeUInt8(((bytes[8] ?? 0) & 0x3f) | 0x80, 8)
  return bytes.toString('hex').replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5')
}
