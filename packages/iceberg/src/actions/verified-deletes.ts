import { tableName, type Catalog, type LoadedTable } from '../catalogs/catalog.ts'
import { marks, type CandidateFile, type CandidateFiles, type FileKind } from '../snapshot/candidate-files.ts'
import type { Deleted } from '../storage/storage.ts'
import { fileKeyOf } from './own-locations.ts'
import { refused } from './refuse.ts'

// Files are deleted in batches. Immediately before each the table is loaded again, and what it has come to refer to since
// is marked; only candidates without a mark are deleted.

export interface VerifiedDeletesOptions {
  /** For messages. */
  readonly action: string
  readonly catalog: Catalog
  /** As it was when everything it refers to was marked. */
  readonly table: LoadedTable
  readonly candidates: CandidateFiles
  readonly keyOf?: (path: string) => string
  /** Candidates that it does not let go stay. Default: all may go. */
  readonly mayDelete?: (path: string) => boolean
  /** Marks what the table refers to and was not marked before. */
  readonly markReachable: (table: LoadedTable) => Promise<void>
  /** Default: deletes them. */
  readonly remove?: (table: LoadedTable, files: readonly CandidateFile[]) => Promise<Deleted>
  /** Called immediately before each batch is removed; when it throws, the batch stays. */
  readonly beforeDelete?: (() => Promise<void>) | undefined
  /** Batches that are deleted at the same time. */
  readonly maxConcurrentDeletes: number
  readonly batchFiles: number
  readonly signal?: AbortSignal | undefined
  readonly onBatch?: (attempted: number) => void
}

export interface FailedFile {
  readonly path: string
  readonly kind: FileKind
  readonly bytes: number
  readonly error: string
}

export interface DeletedFiles {
  /** Of those that are gone. */
  readonly counts: Readonly<Partial<Record<FileKind, number>>>
  readonly files: number
  readonly bytes: number
  readonly failed: readonly FailedFile[]
  /** Files that were not there, where the storage says so. */
  readonly missing: number
  /** The table as it was before the last batch. */
  readonly table: LoadedTable
}

export async function deleteVerified(options: VerifiedDeletesOptions): Promise<DeletedFiles> {
  const { candidates, signal, keyOf = fileKeyOf, maxConcurrentDeletes, batchFiles } = options
  const { mayDelete = () => true } = options
  const remove = options.remove ?? ((from, files) => deleteFiles(from, files, signal))
  const tally = new Tally()
  const running = new Set<Promise<void>>()
  let { table } = options
  try {
    for await (const batch of candidates.marked(marks.none, batchFiles)) {
      while (running.size >= maxConcurrentDeletes) await Promise.race(running)
      signal?.throwIfAborted()
      const before = table
      table = await verified(options, table)
      // The batch was read before the table was: what has been marked in between is left out.
      const isUnmarked = ({ path }: CandidateFile): boolean => candidates.markOf(keyOf(path)) === marks.none
      const unmarked = table === before ? batch : batch.filter(isUnmarked)
      const files = unmarked.filter(({ path }) => mayDelete(path))
      if (files.length === 0) continue
      await options.beforeDelete?.()
      const work = remove(table, files).then((deleted) => {
        running.delete(work)
        tally.add(files, deleted)
        options.onBatch?.(files.length)
      })
      // Whoever takes it sees the failure; until then it is not "unhandled".
      work.catch(() => {})
      running.add(work)
    }
    await Promise.all(running)
  } finally {
    await Promise.allSettled(running)
  }
  return { ...tally.result, table }
}

/** The table as it is now, with everything it refers to marked. */
async function verified(options: VerifiedDeletesOptions, known: LoadedTable): Promise<LoadedTable> {
  const { catalog, signal } = options
  const table = await catalog.loadTable(known.identifier, { known, ...(signal !== undefined && { signal }) })
  assertSameTable(options.action, table, known.metadata.tableUuid)
  if (table !== known) await options.markReachable(table)
  return table
}

/** A table of the same name that was made anew refers to other files. */
export function assertSameTable(action: string, table: LoadedTable, uuid: string | undefined): void {
  if (table.metadata.tableUuid === uuid) return
  const message = `${tableName(table.identifier)} is another table by now: it was dropped, and made anew. Plan again.`
  throw refused(action, table, 'other_table', message)
}

async function deleteFiles(
  { storage }: LoadedTable,
  files: readonly CandidateFile[],
  signal: AbortSignal | undefined,
): Promise<Deleted> {
  return await storage.delete(
    files.map(({ path }) => path),
    { signal },
  )
}

class Tally {
  readonly #counts: Partial<Record<FileKind, number>> = {}
  readonly #failed: FailedFile[] = []
  #files = 0
  #bytes = 0
  #missing = 0

  add(files: readonly CandidateFile[], deleted: Deleted): void {
    const failed = new Map(deleted.failed.map(({ location, error }) => [location, error]))
    const missing = new Set(deleted.missing)
    this.#missing += missing.size
    for (const { path, kind, bytes } of files) {
      if (missing.has(path)) continue
      const error = failed.get(path)
      if (error !== undefined) {
        this.#failed.push({ path, kind, bytes, error: error.message })
        continue
      }
      this.#counts[kind] = (this.#counts[kind] ?? 0) + 1
      this.#files += 1
      this.#bytes += bytes
    }
  }

  get result(): Omit<DeletedFiles, 'table'> {
    return {
      counts: this.#counts,
      files: this.#files,
      bytes: this.#bytes,
      failed: this.#failed,
      missing: this.#missing,
    }
  }
}
