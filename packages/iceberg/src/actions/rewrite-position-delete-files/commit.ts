import { tableName, type LoadedTable } from '../../catalogs/catalog.ts'
import { commitTable, type BuiltCommit, type CommitOutcome } from '../../commit/index.ts'
import { IcebergError } from '../../errors.ts'
import { fileKey, type ContentFile } from '../../manifests/content-file.ts'
import { isAncestor } from '../../metadata/ancestry.ts'
import type { Snapshot } from '../../metadata/snapshot.ts'
import { currentSnapshot, mainBranch } from '../../metadata/table-metadata.ts'
import { buildSnapshot } from '../../write/build-snapshot.ts'
import { removeFiles } from '../../write/remove-files.ts'
import { SnapshotWork } from '../../write/snapshot-work.ts'
import { commitOptionsOf, type ActionRun } from '../action.ts'
import { deleteEntries, findData, isVector } from './delete-entries.ts'
import type { RewrittenDeletes } from './rewrite-groups.ts'

interface CommittedDeletes {
  readonly committed: readonly RewrittenDeletes[]
  /** Those that another commit got in the way of. What was written for them is removed. */
  readonly conflicts: readonly RewrittenDeletes[]
  readonly snapshot: Snapshot | undefined
}

/**
 * Commits groups that were read at `start`. In every try they are compared with the fresh table:
 * - what is replaced must still be live, else the group is given up.
 * - deletes that others have added are kept. But in v3 a data file may have got a vector: then it would have two, and the
 *   group is given up.
 * - a vector for a data file that has gone is left out.
 */
export async function commitDeletes(
  table: LoadedTable,
  start: Snapshot,
  groups: readonly RewrittenDeletes[],
  run: ActionRun,
): Promise<CommittedDeletes> {
  const { signal, catalog } = run
  const work = new SnapshotWork()
  const builtFor = new Map<BuiltCommit, readonly RewrittenDeletes[]>()
  const listed = new Set<string>()
  let conflicts: readonly RewrittenDeletes[] = []
  const build = async (fresh: LoadedTable, attempt: number): Promise<BuiltCommit | undefined> => {
    const { rest, added } = await stillGood(fresh, start, table.metadata.formatVersion, groups, signal)
    conflicts = groups.filter((group) => !rest.includes(group))
    if (rest.length === 0) return undefined
    const numbers = new Map(rest.flatMap((group) => group.added.map((file) => [file.filePath, group.sequenceNumber])))
    const change = {
      added,
      removed: rest.flatMap(({ replaced }) => replaced),
      operation: 'replace',
      deleteSequenceNumber: ({ filePath }: ContentFile) => numbers.get(filePath),
      ...(run.summary !== undefined && { summary: run.summary }),
    } as const
    const built = await buildSnapshot(fresh, mainBranch, change, attempt, { work, signal })
    builtFor.set(built, rest)
    for (const file of built.files) listed.add(file)
    return built
  }
  let outcome: CommitOutcome
  try {
    outcome = await commitTable(catalog, table.identifier, build, commitOptionsOf(run, table.metadata.tableUuid))
  } finally {
    await removeUnlisted(table, groups, listed)
  }
  if (outcome.outcome === 'applied') {
    const committed = builtFor.get(outcome.built) ?? []
    const snapshot = outcome.built.updates.find((update) => update.action === 'add-snapshot')?.snapshot
    return { committed, conflicts: groups.filter((group) => !committed.includes(group)), snapshot }
  }
  if (outcome.outcome === 'unknown') throw outcome.error
  if (outcome.why === 'nothing_to_do') return { committed: [], conflicts, snapshot: undefined }
  throw outcome.error ?? new IcebergError('commit_conflict', `${tableName(table.identifier)} was not changed.`)
}

/** What was part of no request is known to nobody. Of the rest it is for the commit to say what may go. */
async function removeUnlisted(
  table: LoadedTable,
  groups: readonly RewrittenDeletes[],
  listed: ReadonlySet<string>,
): Promise<void> {
  const files = new Set(groups.flatMap(({ added }) => added.map(({ filePath }) => filePath)))
  const unlisted = [...files].filter((file) => !listed.has(file))
  if (unlisted.length > 0) await removeFiles(table, unlisted)
}

/** The groups that can be committed on the fresh table, and what they add. */
async function stillGood(
  fresh: LoadedTable,
  start: Snapshot,
  formatVersion: number,
  groups: readonly RewrittenDeletes[],
  signal: AbortSignal | undefined,
): Promise<{ rest: readonly RewrittenDeletes[]; added: readonly ContentFile[] }> {
  const { metadata } = fresh
  const head = currentSnapshot(metadata, mainBranch)
  const all = (of: readonly RewrittenDeletes[]): ContentFile[] => of.flatMap(({ added }) => added)
  if (head?.snapshotId === start.snapshotId && metadata.formatVersion === formatVersion) {
    return { rest: groups, added: all(groups) }
  }
  // Deletes that were dropped may have something to delete on another line of history.
  const isSameLine = head !== undefined && isAncestor(metadata, head.snapshotId, start.snapshotId)
  if (!isSameLine || metadata.formatVersion !== formatVersion) return { rest: [], added: [] }
  const live = await deleteEntries(fresh, head, signal)
  const liveKeys = new Set(live.map(({ file }) => fileKey(file)))
  const vectors = new Map(live.filter(isVector).map(({ file, only }) => [only, fileKey(file)]))
  const isGood = ({ replaced, targets }: RewrittenDeletes): boolean => {
    const keys = new Set(replaced.map(({ file }) => fileKey(file)))
    if (![...keys].every((key) => liveKeys.has(key))) return false
    return [...targets].every((path) => {
      const vector = vectors.get(path)
      return vector === undefined || keys.has(vector)
    })
  }
  const rest = groups.filter(isGood)
  if (formatVersion < 3) return { rest, added: all(rest) }
  const data = await findData(fresh, head, new Set(rest.flatMap(({ targets }) => [...targets])), signal)
  return { rest, added: all(rest).filter(({ referencedDataFile = '' }) => data.live.has(referencedDataFile)) }
}
