import type { LoadedTable } from '../../catalogs/catalog.ts'
import type { TableMetadata } from '../../metadata/table-metadata.ts'
import { CandidateFiles, type FileKind } from '../../snapshot/candidate-files.ts'
import { plannedTable, type PlannedTable } from '../action.ts'
import { pendingParts } from '../deletion-list.ts'
import { insideAny, ownLocations } from '../own-locations.ts'
import { assertGarbageCollected, refused } from '../refuse.ts'
import { countUnreached, gather, type CountedFiles } from './gather.ts'
import { retentionSettings, settingsOf, type ExpireSettings, type ExpireSnapshotsOptions } from './options.ts'
import { decideRetention, type RemovedRef, type Retention } from './retention.ts'
import { unusedMetadata, type UnusedMetadata } from './unused-metadata.ts'

/** What an expiry would do, and why. Prints as JSON. */
export interface ExpireSnapshotsPlan {
  readonly action: 'expire_snapshots'
  readonly table: PlannedTable
  readonly settings: ExpireSettings
  /** Oldest first. */
  readonly expired: readonly { readonly snapshotId: string; readonly timestampMs: number; readonly reason: string }[]
  readonly kept: readonly {
    readonly snapshotId: string
    readonly timestampMs: number
    readonly reasons: readonly string[]
  }[]
  readonly removedRefs: readonly (Omit<RemovedRef, 'snapshotId'> & { readonly snapshotId: string })[]
  /** Schemas and partition specs that go too. */
  readonly unused: UnusedMetadata
  /** What would be deleted, by kind; absent when it was not counted. */
  readonly files?: Readonly<Partial<Record<FileKind, CountedFiles>>>
  /** Files that nothing reaches any more, and that stay because they are outside the table's own folders. */
  readonly outside?: CountedFiles
  /** Ids that were asked for and are not in the table. */
  readonly unknownSnapshotIds: readonly string[]
  /** Lists of deletions that interrupted runs have left: they are finished first. */
  readonly pendingLists: readonly string[]
}

const action = 'Expiring snapshots'

/** Plans which snapshots of a table go. Reads the table as it was loaded, and changes nothing. */
export async function planExpireSnapshots(
  table: LoadedTable,
  options: ExpireSnapshotsOptions = {},
): Promise<ExpireSnapshotsPlan> {
  assertGarbageCollected(action, table)
  const settings = settingsOf(table, options)
  const { metadata } = table
  const retention = decideRetention(metadata, retentionSettings(settings))
  assertUnheld(table, settings, retention)
  const expiring = new Set(retention.expired.map(({ snapshotId }) => snapshotId))
  const counted = options.countFiles === false ? {} : await countFiles(table, settings, expiring, options)
  const present = new Set(metadata.snapshots.map(({ snapshotId }) => String(snapshotId)))
  return {
    action: 'expire_snapshots',
    table: plannedTable(table, metadata.currentSnapshotId),
    settings,
    ...snapshotsOf(metadata, retention),
    removedRefs: retention.removedRefs.map((ref) => ({ ...ref, snapshotId: String(ref.snapshotId) })),
    unused: settings.cleanExpiredMetadata
      ? await unusedMetadata(table, expiring, options.signal)
      : { schemaIds: [], specIds: [] },
    ...counted,
    unknownSnapshotIds: settings.snapshotIds.filter((id) => !present.has(id)),
    pendingLists: (await pendingParts(table)).map(({ location }) => location),
  }
}

function snapshotsOf(metadata: TableMetadata, { kept, expired }: Retention) {
  const times = new Map(metadata.snapshots.map(({ snapshotId, timestampMs }) => [snapshotId, timestampMs]))
  const timed = <T extends { readonly snapshotId: bigint }>(snapshot: T) => ({
    ...snapshot,
    snapshotId: String(snapshot.snapshotId),
    timestampMs: times.get(snapshot.snapshotId) ?? 0,
  })
  return {
    // A snapshot goes after those before it, so that no chunk breaks a chain that the next is decided by.
    expired: expired.map(timed).toSorted((a, b) => a.timestampMs - b.timestampMs),
    kept: kept.map(timed),
  }
}

function assertUnheld(table: LoadedTable, { snapshotIds }: ExpireSettings, { held }: Retention): void {
  const problems = snapshotIds.flatMap((id) => {
    const holder = held.get(BigInt(id))
    return holder === undefined ? [] : [`${id} (${holder})`]
  })
  if (problems.length === 0) return
  const message = `these snapshots are still needed: ${problems.join(', ')}. Leave them out, or remove what needs them.`
  throw refused(action, table, 'snapshot_held', message)
}

async function countFiles(
  table: LoadedTable,
  { deleteOutsideLocation }: ExpireSettings,
  expiring: ReadonlySet<bigint>,
  { memoryBytes, signal }: ExpireSnapshotsOptions,
): Promise<Pick<ExpireSnapshotsPlan, 'files' | 'outside'>> {
  if (expiring.size === 0) return { files: {}, outside: { files: 0, bytes: 0 } }
  const candidates = await CandidateFiles.open(memoryBytes === undefined ? {} : { memoryBytes })
  try {
    await gather(table, expiring, candidates, signal)
    const isInside = insideAny(ownLocations(table.metadata))
    const { byKind, outside } = await countUnreached(candidates, (path) => deleteOutsideLocation || isInside(path))
    return { files: byKind, outside }
  } finally {
    await candidates.close()
  }
}
