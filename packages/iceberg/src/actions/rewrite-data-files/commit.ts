import type { LoadedTable } from '../../catalogs/catalog.ts'
import { commitTable, type BuiltCommit, type CommitOutcome } from '../../commit/index.ts'
import { IcebergError } from '../../errors.ts'
import type { ContentFile, ManifestEntry } from '../../manifests/content-file.ts'
import type { ManifestFile } from '../../manifests/manifest-file.ts'
import type { Snapshot } from '../../metadata/snapshot.ts'
import { currentSnapshot } from '../../metadata/table-metadata.ts'
import type { ReaderOptions } from '../../scan/table-reader.ts'
import { manifestsOf } from '../../snapshot/live-files.ts'
import { buildSnapshot, type SnapshotChange } from '../../write/build-snapshot.ts'
import { removeFiles } from '../../write/remove-files.ts'
import { SnapshotWork } from '../../write/snapshot-work.ts'
import { commitOptionsOf, type ActionRun } from '../action.ts'
import type { RewrittenGroup } from './live-group.ts'
import { newDeleteConflicts, type Conflict } from './new-deletes.ts'
import type { RewriteSettings } from './options.ts'

export interface CommittedGroups {
  readonly committed: readonly RewrittenGroup[]
  readonly conflicts: readonly Conflict[]
  /** Undefined when nothing was left to commit. */
  readonly snapshot?: Snapshot
  /** Why nothing was committed, when it was not for conflicts of the groups. */
  readonly error?: Error
}

/**
 * Puts new files in the place of those they were made of, in one snapshot. Groups that another commit was in the way of
 * are left out of it. All groups must have been read from the same snapshot. What is not committed is removed, if that is
 * certain; of an unknown outcome it throws `commit_unknown` and nothing is removed.
 */
export async function commitGroups(
  table: LoadedTable,
  groups: readonly RewrittenGroup[],
  settings: RewriteSettings,
  run: ActionRun,
  reading: ReaderOptions,
): Promise<CommittedGroups> {
  const tries = new Tries(groups, settings, run, reading)
  const outcome = await commitTable(
    run.catalog,
    table.identifier,
    (fresh, attempt) => tries.build(fresh, attempt),
    commitOptionsOf(run, table.metadata.tableUuid),
  ).catch(async (error: unknown) => {
    // What was sent is removed by the commit, or kept, as it knows best.
    await removeFiles(table, tries.neverSent())
    throw error
  })
  if (outcome.outcome === 'unknown') throw outcome.error
  await removeFiles(table, tries.neverSent())
  return tries.result(outcome)
}

class Tries {
  readonly #groups: readonly RewrittenGroup[]
  readonly #settings: RewriteSettings
  readonly #run: ActionRun
  readonly #reading: ReaderOptions
  readonly #built = new Map<BuiltCommit, readonly RewrittenGroup[]>()
  readonly #sent = new Set<RewrittenGroup>()
  readonly #work = new Map<string, SnapshotWork>()
  #conflicts = new Map<RewrittenGroup, Conflict>()

  constructor(groups: readonly RewrittenGroup[], settings: RewriteSettings, run: ActionRun, reading: ReaderOptions) {
    this.#groups = groups
    this.#settings = settings
    this.#run = run
    this.#reading = reading
  }

  /** Every try looks at the table as it is now: what was no conflict a moment ago may be one. */
  async build(table: LoadedTable, attempt: number): Promise<BuiltCommit | undefined> {
    const head = currentSnapshot(table.metadata, this.#settings.branch)
    const keepsSequenceNumber = this.#settings.options['use-starting-sequence-number']
    const found = await newDeleteConflicts(table, head, this.#groups, { keepsSequenceNumber, reading: this.#reading })
    this.#conflicts = new Map(found.map((conflict) => [conflict.group, conflict]))
    const hasDeletes = (await manifestsOf(table, head)).some(({ content }) => content === 'deletes')
    for (;;) {
      const groups = this.#groups.filter((group) => !this.#conflicts.has(group))
      if (groups.length === 0) return undefined
      const replaced = new Replacement(groups, keepsSequenceNumber)
      const change = replaced.change(hasDeletes, this.#run.summary)
      const options = { work: this.#workFor(groups), signal: this.#run.signal }
      try {
        const built = await buildSnapshot(table, this.#settings.branch, change, attempt, options)
        for (const group of groups) this.#sent.add(group)
        this.#built.set(built, groups)
        return built
      } catch (error) {
        const missing = withMissingFiles(groups, error)
        if (missing.length === 0) throw error
        for (const group of missing) this.#conflicts.set(group, { group, why: 'not-live' })
      }
    }
  }

  /** What was made for a try serves the next one, as long as that is for the same groups. */
  #workFor(groups: readonly RewrittenGroup[]): SnapshotWork {
    const key = groups.map((group) => this.#groups.indexOf(group)).join(',')
    const work = this.#work.get(key) ?? new SnapshotWork()
    this.#work.set(key, work)
    return work
  }

  neverSent(): ContentFile[] {
    return this.#groups.filter((group) => !this.#sent.has(group)).flatMap((group) => group.added)
  }

  result(outcome: Exclude<CommitOutcome, { outcome: 'unknown' }>): CommittedGroups {
    if (outcome.outcome === 'not_applied') {
      const { error } = outcome
      return { committed: [], conflicts: [...this.#conflicts.values()], ...(error !== undefined && { error }) }
    }
    const committed = this.#built.get(outcome.built) ?? []
    const update = outcome.built.updates.find((each) => each.action === 'add-snapshot')
    const conflicts = this.#groups
      .filter((group) => !committed.includes(group))
      .map((group) => this.#conflicts.get(group) ?? ({ group, why: 'new-deletes' } as const))
    return { committed, conflicts, ...(update !== undefined && { snapshot: update.snapshot }) }
  }
}

/** The groups with a file that was not found to be removed. */
function withMissingFiles(groups: readonly RewrittenGroup[], error: unknown): RewrittenGroup[] {
  if (!(error instanceof IcebergError) || error.code !== 'file_not_live') return []
  const missing = new Set(error.details['files'] as readonly string[])
  return groups.filter((group) => group.files.some(({ file }) => missing.has(file.filePath)))
}

/** Takes the old files of groups out of a snapshot, with deletes that nothing is left for, and puts in the new ones. */
class Replacement {
  readonly #groups: readonly RewrittenGroup[]
  readonly #dataSequenceNumber: bigint | undefined
  /** Of the data files that stay. */
  #leastSequenceNumber: bigint | undefined

  constructor(groups: readonly RewrittenGroup[], keepsSequenceNumber: boolean) {
    this.#groups = groups
    const hasSequenceNumbers = groups.every(({ formatVersion }) => formatVersion > 1)
    this.#dataSequenceNumber = keepsSequenceNumber && hasSequenceNumbers ? groups[0]?.start.sequenceNumber : undefined
    if (groups.some(({ added }) => added.length > 0)) this.#leastSequenceNumber = this.#dataSequenceNumber
  }

  change(hasDeletes: boolean, summary: Readonly<Record<string, string>> | undefined): SnapshotChange {
    return {
      added: this.#groups.flatMap((group) => group.added),
      removed: this.#groups.flatMap((group) => group.files.map(({ file }) => ({ file }))),
      operation: 'replace',
      ...(hasDeletes && {
        removes: (entry: ManifestEntry) => this.#isDeleteOfNothing(entry),
        mayRemoveFrom: (manifest: ManifestFile) => this.#mayHoldDeletes(manifest),
      }),
      ...(this.#dataSequenceNumber !== undefined && { dataSequenceNumber: this.#dataSequenceNumber }),
      ...(summary !== undefined && { summary }),
    }
  }

  // As in every commit of Iceberg's Java, deletes go that are older than every data file. What data files stay is seen
  // on the way: those of manifests that are filtered one by one, the others by what the manifest list says of them.
  // Manifests of deletes are filtered after all of data.

  #mayHoldDeletes({ content, minSequenceNumber = 0n }: ManifestFile): boolean {
    if (content === 'deletes') return true
    this.#noteKept(minSequenceNumber)
    return false
  }

  #isDeleteOfNothing({ file, sequenceNumber }: ManifestEntry): boolean {
    if (file.content === 'data') {
      this.#noteKept(sequenceNumber)
      return false
    }
    return this.#leastSequenceNumber !== undefined && sequenceNumber < this.#leastSequenceNumber
  }

  #noteKept(sequenceNumber: bigint): void {
    const least = this.#leastSequenceNumber
    if (least === undefined || sequenceNumber < least) this.#leastSequenceNumber = sequenceNumber
  }
}
