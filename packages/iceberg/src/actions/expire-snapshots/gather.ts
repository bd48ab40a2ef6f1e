import type { LoadedTable } from '../../catalogs/catalog.ts'
import { marks, type CandidateFiles, type FileKind } from '../../snapshot/candidate-files.ts'
import { ReachableWalk, statisticsFilesOf, type ReachableFile } from '../../snapshot/reachable.ts'
import { fileKeyOf } from '../own-locations.ts'

// What only the expiring snapshots reach: everything they reach, less everything that the kept ones reach. Manifests that
// kept snapshots have too need not be read for the first half: their files stay.

export interface CountedFiles {
  readonly files: number
  readonly bytes: number
}

export interface Gathered {
  /** Marks what a table reaches and was not marked before: with the kept snapshots at first, then with what is new. */
  readonly markReachable: (table: Pick<LoadedTable, 'metadata'>) => Promise<void>
  /** The walk over what is kept. */
  readonly walk: ReachableWalk
  readonly bytesRead: () => number
  /** Manifests and manifest lists of expiring snapshots that are gone already. */
  readonly missing: readonly string[]
}

/** Adds everything that only the expiring snapshots reach to the candidates, and marks what others reach. */
export async function gather(
  { metadata, storage }: LoadedTable,
  expiring: ReadonlySet<bigint>,
  candidates: CandidateFiles,
  signal: AbortSignal | undefined,
): Promise<Gathered> {
  const missing: string[] = []
  const kept = new ReachableWalk(storage, { signal })
  const gone = new ReachableWalk(storage, { signal, onMissing: (path) => missing.push(path) })
  const add = ({ path, kind, bytes }: ReachableFile): void => {
    candidates.add(fileKeyOf(path), { path, kind, bytes, modifiedAtMs: 0 })
  }
  const isKept = (snapshotId: bigint): boolean => !expiring.has(snapshotId)
  const staying = metadata.snapshots.filter(({ snapshotId }) => isKept(snapshotId))
  await kept.readLists(staying)
  const going = metadata.snapshots.filter(({ snapshotId }) => !isKept(snapshotId))
  for await (const found of gone.lists(going)) {
    for (const file of found) if (file.kind !== 'manifest' || !kept.hasManifest(file.path)) add(file)
  }
  const shared = (path: string): boolean => kept.hasManifest(path)
  let hasContent = false
  for await (const found of gone.files(shared)) {
    hasContent = true
    for (const file of found) add(file)
  }
  for (const file of statisticsFilesOf(metadata, (id) => !isKept(id))) add(file)

  const mark = ({ path }: { path: string }): void => candidates.mark(fileKeyOf(path), marks.reached)
  for (const path of kept.listed()) mark({ path })
  const markReachable = async (table: Pick<LoadedTable, 'metadata'>, isOf?: (id: bigint) => boolean): Promise<void> => {
    const { snapshots } = table.metadata
    const wanted = isOf === undefined ? snapshots : snapshots.filter(({ snapshotId }) => isOf(snapshotId))
    for await (const found of kept.lists(wanted)) found.forEach(mark)
    statisticsFilesOf(table.metadata, isOf).forEach(mark)
    // Without candidates among the files, it does not matter which of them are in use.
    if (hasContent) for await (const found of kept.files()) found.forEach(mark)
  }
  await markReachable({ metadata }, isKept)
  return {
    markReachable: (table) => markReachable(table),
    walk: kept,
    bytesRead: () => kept.bytesRead + gone.bytesRead,
    missing,
  }
}

/** The candidates that nothing reaches: those to go, by what they are, and those that lie outside and stay. */
export interface UnreachedFiles {
  readonly byKind: Readonly<Partial<Record<FileKind, CountedFiles>>>
  readonly outside: CountedFiles
}

export async function countUnreached(
  candidates: CandidateFiles,
  mayDelete: (path: string) => boolean,
): Promise<UnreachedFiles> {
  const byKind: Partial<Record<FileKind, { files: number; bytes: number }>> = {}
  const outside = { files: 0, bytes: 0 }
  for await (const batch of candidates.marked(marks.none, 10_000)) {
    for (const { kind, bytes, path } of batch) {
      const count = mayDelete(path) ? (byKind[kind] ??= { files: 0, bytes: 0 }) : outside
      count.files += 1
      count.bytes += bytes
    }
  }
  return { byKind, outside }
}
