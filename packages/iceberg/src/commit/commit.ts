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
import { showsUpdates } from './applied.ts'
import { defaultRetrySettings, pauseMs, retrySettingsOf, type RetrySettings } from './retry-settings.ts'

// Load, build, commit; on a conflict all of it again, from the fresh table. The outcomes are three:
//   applied      it is part of the table, found there or answered so
//   not_applied  for certain; what was built for it has been removed
//   unknown      nobody can tell now; nothing is removed, and nothing else was tried
// An unknown commit is looked for in the table. While it is not there, and the table is still the one it was built on,
// the very same request is sent again: it carries the same snapshot and demands the same base, so it cannot be applied
// twice. Once others have moved the branch on, or used up its sequence number, it can no longer be applied, and is built
// anew; its files stay, for the sake of what cannot happen.

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
  /** Stops the tries, never one that is under way. */
  readonly signal?: AbortSignal
  /** Of a table that was just loaded, to spare loading it again for the first try. */
  readonly loaded?: LoadedTable
  /** Refuses another table of the same name. Default: that of the table that is loaded first. */
  readonly tableUuid?: string | undefined
  /** Waits between tries. */
  readonly pause?: (ms: number) => Promise<void>
}

export type CommitOutcome =
  | { readonly outcome: 'applied'; readonly table: LoadedTable; readonly attempts: number }
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
    await tries.removeFailed()
    throw error
  }
}

type Failure = {
  failed: true
  why: 'conflict' | 'unavailable' | 'refused' | 'rejected'
  error: Error
  retryAfterMs?: number
}

class Tries {
  readonly #catalog: Catalog
  readonly #identifier: TableIdentifier
  readonly #build: BuildCommit
  readonly #options: CommitOptions
  readonly #startedAt = performance.now()
  #settings: RetrySettings = defaultRetrySettings
  #attempts = 0
  #loaded: LoadedTable | undefined
  #tableUuid: string | undefined
  readonly #failedFiles = new Set<string>()
  /** Of tries that may have been applied, or have been. */
  readonly #keptFiles = new Set<string>()

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
    const built = await this.#build(table, this.#attempts)
    if (built === undefined) return this.#notApplied('nothing_to_do')
    const { requirements, updates, files } = built
    const { guard } = this.#options
    const request = { requirements, updates, idempotencyKey: uuidV7(), ...(guard !== undefined && { guard }) }
    const result = await this.#send(table, request)
    if (result.outcome === 'unknown') return this.#resolve(table, built, request, result)
    if (result.outcome === 'applied') return this.#applied(result.table, files)
    for (const file of files) this.#failedFiles.add(file)
    const { why, error, retryAfterMs } = result
    return { failed: true, why, error, ...(retryAfterMs !== undefined && { retryAfterMs }) }
  }

  async #load(): Promise<LoadedTable | Failure> {
    try {
      const first = this.#attempts === 1 ? this.#loaded : undefined
      const table = first ?? (await this.#catalog.loadTable(this.#identifier, this.#loaded && { known: this.#loaded }))
      this.#assertSameTable(table)
      this.#loaded = table
      this.#settings = retrySettingsOf(table.metadata)
      return table
    } catch (error) {
      if (!passes(error)) throw error
      return { failed: true, why: 'unavailable', error: error as Error }
    }
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
      if (error instanceof IcebergError) return { outcome: 'not_applied', why: 'rejected', error }
      return { outcome: 'unknown', error: error as Error }
    }
  }

  async #resolve(
    base: LoadedTable,
    built: BuiltCommit,
    request: CommitRequest,
    result: CommitResult & { outcome: 'unknown' },
  ): Promise<CommitOutcome | Failure> {
    for (const file of built.files) this.#keptFiles.add(file)
    let last: Error = result.error
    for (let looks = 1; looks <= this.#settings.retries + 1; looks++) {
      await this.#pause(pauseMs(this.#settings, looks))
      const now = await this.#look()
      if (now === undefined) continue
      // Another table has the name by now; of the one that was dropped nobody can tell.
      if (base.metadata.tableUuid !== undefined && now.metadata.tableUuid !== base.metadata.tableUuid) break
      if (isApplied(built, now)) return this.#applied(now, built.files)
      if (movedOn(now, request)) return { failed: true, why: 'conflict', error: last }
      if (!pinsBase(request.requirements)) continue
      const again = await this.#send(now, request)
      if (again.outcome === 'applied') return this.#applied(again.table, built.files)
      last = again.error
      if (again.outcome !== 'not_applied' || again.why !== 'refused') continue
      // Refused now says nothing about the first one: look once more, and leave it at that.
      const latest = await this.#look()
      if (latest !== undefined && isApplied(built, latest)) return this.#applied(latest, built.files)
      break
    }
    return this.#unknown(last, built.files)
  }

  async #look(): Promise<LoadedTable | undefined> {
    try {
      return await this.#catalog.loadTable(this.#identifier)
    } catch {
      return undefined
    }
  }

  /** False when there is no use in it, or no time left. */
  async #waitToTryAgain({ why, error, retryAfterMs = 0 }: Failure): Promise<boolean> {
    if (why === 'refused' || why === 'rejected') return false
    if (this.#attempts > this.#settings.retries) return false
    const pause = Math.max(retryAfterMs, pauseMs(this.#settings, this.#attempts), retryAfterOf(error))
    if (performance.now() - this.#startedAt + pause > this.#settings.totalMs) return false
    await this.#pause(pause, this.#options.signal)
    return true
  }

  /** The signal only ends the pause: who goes on looks at it. */
  async #pause(ms: number, signal?: AbortSignal): Promise<void> {
    if (this.#options.pause !== undefined) return this.#options.pause(ms)
    await sleep(ms, undefined, signal === undefined ? {} : { signal }).catch(() => {})
  }

  async #applied(table: LoadedTable, files: readonly string[]): Promise<CommitOutcome> {
    for (const file of files) this.#keptFiles.add(file)
    await this.removeFailed()
    return { outcome: 'applied', table, attempts: this.#attempts }
  }

  #unknown(cause: Error, files: readonly string[]): CommitOutcome {
    const table = tableName(this.#identifier)
    const error = new IcebergError(
      'commit_unknown',
      `Whether ${table} was changed could not be found out: ${cause.message} Its new files are kept; look for its snapshot.`,
      { details: { table }, cause },
    )
    return { outcome: 'unknown', error, attempts: this.#attempts, files }
  }

  async #notApplied(
    why: Extract<CommitOutcome, { outcome: 'not_applied' }>['why'],
    error?: Error,
  ): Promise<CommitOutcome> {
    const leftOver = await this.removeFailed()
    return { outcome: 'not_applied', why, attempts: this.#attempts, leftOver, ...(error !== undefined && { error }) }
  }

  /** Removes what only failed tries used, and returns what could not be removed. Never fails. */
  async removeFailed(): Promise<string[]> {
    const files = [...this.#failedFiles].filter((file) => !this.#keptFiles.has(file))
    if (files.length === 0 || this.#loaded === undefined) return files
    try {
      const failed = await this.#loaded.storage.delete(files)
      return failed.map(({ location }) => location)
    } catch {
      return files
    }
  }
}

function isApplied(built: BuiltCommit, { metadata }: LoadedTable): boolean {
  return built.isApplied?.(metadata) ?? showsUpdates(metadata, built.updates) ?? false
}

/** Whether a request that is not in the table as it is now can no longer get there. */
function movedOn({ metadata }: LoadedTable, { requirements, updates }: CommitRequest): boolean {
  const branchMoved = requirements.some((requirement) => {
    if (requirement.type !== 'assert-ref-snapshot-id') return false
    return (metadata.refs.get(requirement.ref)?.snapshotId ?? null) !== requirement.snapshotId
  })
  // Commits to other branches count too. Only the first snapshot of a branch may have a number that was passed.
  const numberPassed = updates.some(
    (update) =>
      update.action === 'add-snapshot' &&
      update.snapshot.parentSnapshotId !== undefined &&
      metadata.formatVersion > 1 &&
      update.snapshot.sequenceNumber <= metadata.lastSequenceNumber,
  )
  return branchMoved || numberPassed
}

/** Whether a second copy of the request must fail once the first was applied. */
function pinsBase(requirements: readonly MetadataRequirement[]): boolean {
  return requirements.some((requirement) => requirement.type === 'assert-ref-snapshot-id')
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
