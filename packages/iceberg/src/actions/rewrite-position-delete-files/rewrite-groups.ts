import type { LoadedTable } from '../../catalogs/catalog.ts'
import { IcebergError } from '../../errors.ts'
import { fileKey, type ContentFile } from '../../manifests/content-file.ts'
import { partitionKey } from '../../manifests/partition-key.ts'
import type { Snapshot } from '../../metadata/snapshot.ts'
import type { DuckDb } from '../../parquet/duckdb.ts'
import { PositionSet } from '../../puffin/position-set.ts'
import { forEachLimited } from '../../storage/each.ts'
import {
  readPositions,
  readVector,
  writePositionFiles,
  writeVectors,
  type DeleteTarget,
} from '../../write/position-files.ts'
import { findData, isVector, type DeleteEntry, type NamedData } from './delete-entries.ts'
import type { DeleteGroup } from './plan.ts'
import type { RewritePositionDeletesSettings } from './options.ts'

// A delete of a row is kept if it applies now: its path is that of a live data file, which the delete file reaches by
// naming it or by its partition, and which is not newer. Others have nothing left to delete, and vanish. New files have
// the highest sequence number of those they replace; as each path is checked against the file that named it, nothing
// newer is deleted by that.
// A path that is live but for its scheme or authority is no reason to drop a delete: other engines may match the two.
// Then the group is left as it is.
// In v3 a data file gets one vector, which holds everything that deletes rows of it by position: also the vector it
// has, and files that name it in other partitions.

/** A group with the deletes of it that are live. */
export interface LiveDeleteGroup {
  readonly group: DeleteGroup
  readonly entries: readonly DeleteEntry[]
}

export interface RewrittenDeletes {
  readonly group: DeleteGroup
  readonly added: readonly ContentFile[]
  readonly replaced: readonly DeleteEntry[]
  readonly sequenceNumber: bigint
  /** The data files whose deletes the new files hold. */
  readonly targets: ReadonlySet<string>
  readonly bytesRead: number
}

type DeleteGroupOutcome =
  | ({ readonly outcome: 'rewritten' } & RewrittenDeletes)
  | { readonly outcome: 'refused'; readonly group: DeleteGroup; readonly message: string }
  /** A data file of it gets its vector from another group first. */
  | { readonly outcome: 'later'; readonly group: DeleteGroup }

interface DeleteRewriting {
  readonly table: LoadedTable
  readonly start: Snapshot
  /** All position deletes of the snapshot. */
  readonly entries: readonly DeleteEntry[]
  readonly settings: RewritePositionDeletesSettings
  readonly duckDb: DuckDb
  readonly signal: AbortSignal | undefined
  /** Data files that have a new vector already: a second one would make the table unreadable. */
  readonly claimed: Set<string>
}

type ReadDeletes = ReadonlyMap<string, PositionSet>

/** Writes the new files of groups, which are committed by nobody yet. Removes none when it fails: `onWritten` has them. */
export async function rewriteDeleteGroups(
  context: DeleteRewriting,
  groups: readonly LiveDeleteGroup[],
  onWritten: (files: readonly ContentFile[]) => void,
): Promise<DeleteGroupOutcome[]> {
  const { table, start, settings, signal, claimed } = context
  const reading = groups.map((live) => ({ ...live, read: new Map<DeleteEntry, ReadDeletes>(), problem: '' }))
  await forEachLimited(reading, settings.concurrency, async (each) => {
    for (const entry of each.entries) each.problem ||= await readInto(context, entry, each.read)
  })
  const paths = new Set(reading.flatMap(({ read }) => [...read.values()].flatMap((deletes) => [...deletes.keys()])))
  const data = await findData(table, start, paths, signal)
  const outcomes: DeleteGroupOutcome[] = []
  const ready: { group: DeleteGroup; read: Map<DeleteEntry, ReadDeletes>; targets: DeleteTarget[] }[] = []
  for (const { group, read, problem } of reading) {
    const message = problem === '' ? spellingProblem(read, data) : problem
    if (message !== undefined) {
      outcomes.push({ outcome: 'refused', group, message })
      continue
    }
    const named = targetsOf(read, data).map(({ entry }) => entry.file.filePath)
    if (table.metadata.formatVersion >= 3) {
      if (named.some((path) => claimed.has(path))) {
        outcomes.push({ outcome: 'later', group })
        continue
      }
      const unreadable = await readOthers(context, new Set(named), read)
      if (unreadable !== '') {
        outcomes.push({ outcome: 'refused', group, message: unreadable })
        continue
      }
      for (const path of named) claimed.add(path)
    }
    ready.push({ group, read, targets: targetsOf(read, data) })
  }
  await forEachLimited(ready, settings.concurrency, async ({ group, read, targets }) => {
    signal?.throwIfAborted()
    const added = await write(context, targets)
    onWritten(added)
    const replaced = [...read.keys()]
    outcomes.push({
      outcome: 'rewritten',
      group,
      added,
      replaced,
      sequenceNumber: replaced.reduce((most, { sequenceNumber: n }) => (n > most ? n : most), 0n),
      targets: new Set(targets.map(({ entry }) => entry.file.filePath)),
      bytesRead: replaced.reduce((sum, { file }) => sum + sizeOf(file), 0),
    })
  })
  return outcomes
}

/** Of a Puffin file only the part that the vector takes. */
export function sizeOf(file: ContentFile): number {
  return file.contentSizeInBytes ?? file.fileSizeInBytes
}

/** Returns what is wrong with a file that cannot be read; empty when it was. */
async function readInto(
  { duckDb, table, signal }: DeleteRewriting,
  entry: DeleteEntry,
  read: Map<DeleteEntry, ReadDeletes>,
): Promise<string> {
  signal?.throwIfAborted()
  try {
    const positions = await readPositions(duckDb, table, entry.file)
    read.set(entry, new Map([...positions].map(([path, list]) => [path, new PositionSet(list)])))
    return ''
  } catch (error) {
    if (error instanceof IcebergError && error.code === 'parquet_invalid') return error.message
    throw error
  }
}

function spellingProblem(read: ReadonlyMap<DeleteEntry, ReadDeletes>, data: NamedData): string | undefined {
  for (const [entry, deletes] of read) {
    for (const path of deletes.keys()) {
      const other = data.spelledOtherwise.get(path)
      if (other === undefined) continue
      return (
        `${entry.file.filePath} deletes rows of ${path}, and the table has ${other}, which is the same path with another ` +
        'scheme or authority. Some engines take the two for one file; without these deletes its rows would come back.'
      )
    }
  }
  return undefined
}

/** The deletes that apply, by data file. */
function targetsOf(read: ReadonlyMap<DeleteEntry, ReadDeletes>, { live }: NamedData): DeleteTarget[] {
  const targets = new Map<string, DeleteTarget>()
  for (const [deletes, positions] of read) {
    for (const [path, set] of positions) {
      const entry = live.get(path)
      if (entry === undefined || entry.sequenceNumber > deletes.sequenceNumber) continue
      if (deletes.only !== path && keyOf(deletes.file) !== keyOf(entry.file)) continue
      const target = targets.get(path) ?? { entry, positions: new PositionSet() }
      target.positions.addAll(set)
      targets.set(path, target)
    }
  }
  return [...targets.values()]
}

const keyOf = ({ specId, partition }: ContentFile): string => partitionKey(specId, partition)

/** What else deletes rows of the data files that get a vector. It is replaced along. Returns what cannot be read. */
async function readOthers(
  context: DeleteRewriting,
  named: ReadonlySet<string>,
  read: Map<DeleteEntry, ReadDeletes>,
): Promise<string> {
  const known = new Set([...read.keys()].map(({ file }) => fileKey(file)))
  for (const entry of context.entries) {
    const { only } = entry
    if (only === undefined || !named.has(only) || known.has(fileKey(entry.file))) continue
    if (isVector(entry)) read.set(entry, new Map([[only, await readVector(context.table, entry.file)]]))
    else {
      const problem = await readInto(context, entry, read)
      if (problem !== '') return problem
    }
  }
  return ''
}

async function write({ table, settings, duckDb }: DeleteRewriting, targets: readonly DeleteTarget[]) {
  if (targets.length === 0) return []
  if (table.metadata.formatVersion >= 3) return await writeVectors(table, targets)
  const { metadata } = table
  const properties = { ...metadata.properties, 'write.delete.target-file-size-bytes': String(settings.targetBytes) }
  return await writePositionFiles(
    duckDb,
    { ...table, metadata: { ...metadata, properties } },
    targets,
    settings.granularity,
  )
}
