import { randomUUID } from 'node:crypto'
import type { LoadedTable } from '../../catalogs/catalog.ts'
import type { CandidateFile } from '../../snapshot/candidate-files.ts'
import { forEachLimited } from '../../storage/each.ts'
import { below, fileName } from '../../storage/location.ts'
import type { Deleted, FailedDelete } from '../../storage/storage.ts'
import { fencepostFolder } from '../deletion-list.ts'

// Orphans in quarantine are beside the table's metadata, where no engine looks for orphans:
//   <metadata>/_fencepost/quarantine/<id>/00001.jsonl         what was moved, from where to where
//   <metadata>/_fencepost/quarantine/<id>/files/1-<name>      the files
// A batch is written down before it is moved, and a file is copied before the original is deleted. So wherever a move
// ends, every file is at its old place, or in quarantine and written down. Restoring and purging can be repeated.

interface Moved {
  readonly from: string
  readonly to: string
  readonly bytes: number
}

export interface QuarantineSummary {
  readonly id: string
  readonly files: number
  readonly bytes: number
  /** When the first of it was written. */
  readonly since: Date
}

const parallelCopies = 8

/** One quarantine, while files are moved to it. */
export class Quarantine {
  readonly #table: LoadedTable
  readonly #id = randomUUID()
  #files = 0
  #batches = 0

  constructor(table: LoadedTable) {
    this.#table = table
  }

  get summary(): { quarantineId?: string } {
    return this.#batches === 0 ? {} : { quarantineId: this.#id }
  }

  /** Moves files, and says which could not be moved or were not there. */
  async move(files: readonly CandidateFile[], signal?: AbortSignal): Promise<Deleted> {
    const { storage } = this.#table
    const folder = below(quarantineFolder(this.#table), this.#id)
    const moves = files.map(({ path, bytes }): Moved => {
      this.#files += 1
      return { from: path, to: below(folder, 'files', `${this.#files}-${fileName(path)}`), bytes }
    })
    this.#batches += 1
    const manifest = below(folder, `${String(this.#batches).padStart(5, '0')}.jsonl`)
    const lines = moves.map((move) => JSON.stringify(move)).join('\n')
    await storage.write(manifest, Buffer.from(`${lines}\n`), { exclusive: true, signal })
    const copied: string[] = []
    const failed: FailedDelete[] = []
    const missing: string[] = []
    await forEachLimited(moves, parallelCopies, async ({ from, to }) => {
      signal?.throwIfAborted()
      try {
        await storage.copy(from, to, { signal })
        copied.push(from)
      } catch (error) {
        signal?.throwIfAborted()
        if ((error as { code?: string }).code === 'storage_not_found') missing.push(from)
        else failed.push({ location: from, error: error as Error })
      }
    })
    const deleted = await storage.delete(copied, { signal })
    return { failed: [...failed, ...deleted.failed], missing: [...missing, ...deleted.missing] }
  }
}

/** The quarantines of a table, oldest first. */
export async function listQuarantines(table: LoadedTable): Promise<QuarantineSummary[]> {
  const found = new Map<string, { files: number; bytes: number; since: Date }>()
  const folder = quarantineFolder(table)
  for await (const { location, modifiedAt } of table.storage.list(folder)) {
    const [id, name = ''] = location.slice(folder.length + 1).split('/')
    if (id === undefined || !name.endsWith('.jsonl')) continue
    const moves = await readMoves(table, location)
    const known = found.get(id) ?? { files: 0, bytes: 0, since: modifiedAt }
    found.set(id, {
      files: known.files + moves.length,
      bytes: known.bytes + moves.reduce((sum, { bytes }) => sum + bytes, 0),
      since: modifiedAt < known.since ? modifiedAt : known.since,
    })
  }
  const summaries = [...found].map(([id, summary]) => ({ id, ...summary }))
  return summaries.toSorted((a, b) => a.since.getTime() - b.since.getTime())
}

export interface Restored {
  readonly restored: number
  /** Where another file is by now: nothing is overwritten, and what was moved from there stays in quarantine. */
  readonly taken: readonly string[]
}

/** Brings every file of a quarantine back to where it was. */
export async function restoreQuarantine(table: LoadedTable, id: string): Promise<Restored> {
  const { storage } = table
  let restored = 0
  const taken: string[] = []
  for (const { manifest, moves } of await quarantined(table, id)) {
    const back: string[] = []
    await forEachLimited(moves, parallelCopies, async ({ from, to }) => {
      if (!(await storage.exists(to))) return
      if (!(await storage.exists(from))) {
        await storage.copy(to, from)
        restored += 1
      } else if ((await storage.size(from)) !== (await storage.size(to))) {
        taken.push(from)
        return
      }
      // A file of the same size was copied by a move that ended before it deleted the original.
      back.push(to)
    })
    await deleteAll(table, back)
    if (taken.length === 0) await deleteAll(table, [manifest])
  }
  return { restored, taken }
}

/** Deletes the files of a quarantine for good. */
export async function purgeQuarantine(table: LoadedTable, id: string): Promise<{ readonly purged: number }> {
  let purged = 0
  for (const { manifest, moves } of await quarantined(table, id)) {
    purged += await deleteAll(
      table,
      moves.map(({ to }) => to),
    )
    await deleteAll(table, [manifest])
  }
  return { purged }
}

function quarantineFolder(table: LoadedTable): string {
  return fencepostFolder(table, 'quarantine')
}

async function quarantined(table: LoadedTable, id: string): Promise<{ manifest: string; moves: Moved[] }[]> {
  if (!/^[0-9a-f-]{36}$/.test(id)) throw new TypeError(`"${id}" is not the id of a quarantine.`)
  const manifests: string[] = []
  const folder = below(quarantineFolder(table), id)
  for await (const { location } of table.storage.list(folder)) {
    if (/^\d{5}\.jsonl$/.test(location.slice(folder.length + 1))) manifests.push(location)
  }
  return await Promise.all(
    manifests.toSorted().map(async (manifest) => ({ manifest, moves: await readMoves(table, manifest) })),
  )
}

async function readMoves({ storage }: LoadedTable, manifest: string): Promise<Moved[]> {
  const text = Buffer.from(await storage.read(manifest)).toString('utf8')
  return text
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as Moved)
}

/** Returns how many were deleted. */
async function deleteAll({ storage }: LoadedTable, locations: readonly string[]): Promise<number> {
  const { failed, missing } = await storage.delete(locations)
  const [first] = failed
  if (first !== undefined) throw first.error
  return locations.length - missing.length
}
