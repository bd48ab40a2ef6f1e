import {
  IcebergError,
  manifestsOf,
  planExpireSnapshots,
  planFiles,
  planRemoveOrphanFiles,
  planRewriteDataFiles,
  planRewriteManifests,
  planRewritePositionDeletes,
  tableFacts,
  type Catalog,
  type LoadedTable,
  type RewriteDataFilesPlan,
  type TableFacts,
} from '@fencepost/iceberg'
import type { HealthFacts, PlannedActions } from './health-facts.ts'
import { before, type HealthSettings } from './health-settings.ts'
import { defaultScanCosts, scanMicros, type ScanCosts, type ScanShape } from './scan-cost.ts'
import { ScanTally } from './scan-tally.ts'

export interface GatherOptions {
  /** Lists the table's folder to find orphans, which takes long for a large table. Default false. */
  readonly orphans?: boolean
  /** Default: the present time. */
  readonly now?: Date
  readonly costs?: ScanCosts
  readonly signal?: AbortSignal
}

/**
 * Reads what the health of a table is told from: its metadata and manifests, and with `orphans` the names of its files.
 * What the actions would do is asked of their own planners, so a table that they have nothing to do for is told so.
 */
export async function gatherHealthFacts(
  catalog: Catalog,
  table: LoadedTable,
  settings: HealthSettings,
  { orphans = false, now = new Date(), costs = defaultScanCosts, signal }: GatherOptions = {},
): Promise<HealthFacts> {
  const facts = await tableFacts(table, { targetFileBytes: settings.targetFileSizeBytes, nowMs: now.getTime() })
  const manifests = await manifestCounts(table, signal)
  const positionDeletes = await planPositionDeletes(table, facts)
  const { plan, tally } = await planData(table, settings, costs, manifests.now, positionDeletes.filesAfter, signal)
  const shape = tally.shape(manifests.now)
  return {
    table: facts,
    formatVersion: table.metadata.formatVersion,
    now: shape,
    ideal: { ...nothing, manifests: manifests.ideal, dataFiles: tally.idealFiles, liveBytes: shape.liveBytes },
    plans: {
      dataFiles: {
        files: plan.files,
        bytes: plan.bytes,
        groups: plan.groups.length,
        after: tally.shapeAfter(plan, manifests.now),
        options: plannedOptions(plan, facts),
      },
      positionDeletes,
      manifests: await planManifests(table, manifests.now),
      snapshots: await unlessRefused(() => planSnapshots(table, settings, now, signal)),
      orphans: orphans ? await unlessRefused(() => planOrphans(catalog, table, settings, now, signal)) : undefined,
    },
    ...(plan.unsupported !== undefined && { unsupported: plan.unsupported }),
  }
}

const nothing: ScanShape = {
  manifests: 0,
  dataFiles: 0,
  liveBytes: 0,
  deletedBytes: 0,
  positionDeleteFiles: 0,
  deletionVectors: 0,
  equalityDeletes: 0,
}

/**
 * Plans a rewrite by size and by deleted rows. When the deletes that it leaves cost too much, it is planned once more to
 * take every file that has some.
 */
async function planData(
  table: LoadedTable,
  settings: HealthSettings,
  costs: ScanCosts,
  manifests: number,
  positionFilesAfter: number,
  signal: AbortSignal | undefined,
): Promise<{ plan: RewriteDataFilesPlan; tally: ScanTally }> {
  const options = {
    'target-file-size-bytes': settings.targetFileSizeBytes,
    'min-input-files': settings.minInputFiles,
    'delete-ratio-threshold': settings.deleteRatioThreshold,
  }
  const plan = await planRewriteDataFiles(table, { options })
  const tally = new ScanTally(settings.targetFileSizeBytes, plan)
  for await (const files of planFiles(table, signal === undefined ? {} : { signal })) tally.add(files)
  const after = tally.shapeAfter(plan, manifests)
  const left = { ...after, positionDeleteFiles: Math.min(after.positionDeleteFiles, positionFilesAfter) }
  const withoutDeletes = { ...left, deletedBytes: 0, positionDeleteFiles: 0, deletionVectors: 0, equalityDeletes: 0 }
  const [all, less] = [scanMicros(left, costs), scanMicros(withoutDeletes, costs)]
  if (all === 0 || (100 * (all - less)) / all <= settings.maxDeletePoints) return { plan, tally }
  const every = await planRewriteDataFiles(table, { options: { ...options, 'delete-file-threshold': 1 } })
  return { plan: every, tally: tally.withPlan(every) }
}

/** The options that make the action do what was planned. */
function plannedOptions(
  { settings }: RewriteDataFilesPlan,
  { deleteFiles }: TableFacts,
): PlannedActions['dataFiles']['options'] {
  const { options } = settings
  return {
    'target-file-size-bytes': settings.sizes.target,
    'min-input-files': options['min-input-files'],
    'delete-ratio-threshold': options['delete-ratio-threshold'],
    ...(options['delete-file-threshold'] === 1 && { 'delete-file-threshold': 1 }),
    ...(deleteFiles.files > 0 && { 'remove-dangling-deletes': true }),
  }
}

async function manifestCounts(table: LoadedTable, signal?: AbortSignal): Promise<{ now: number; ideal: number }> {
  signal?.throwIfAborted()
  const { metadata } = table
  const head = metadata.snapshots.find(({ snapshotId }) => snapshotId === metadata.currentSnapshotId)
  if (head === undefined) return { now: 0, ideal: 0 }
  const live = (await manifestsOf(table, head)).filter(
    ({ addedFilesCount, existingFilesCount }) => addedFilesCount !== 0 || existingFilesCount !== 0,
  )
  // Of every spec the data at least; deletes need none when there are none.
  const specs = new Map<number, number>()
  for (const { partitionSpecId, content, manifestLength } of live) {
    if (content === 'data') specs.set(partitionSpecId, (specs.get(partitionSpecId) ?? 0) + manifestLength)
  }
  const given = Number(metadata.properties['commit.manifest.target-size-bytes'])
  const target = given > 0 ? given : 8 * 1024 ** 2
  const ideal = [...specs.values()].reduce((sum, bytes) => sum + Math.max(1, Math.ceil(bytes / target)), 0)
  return { now: live.length, ideal: Math.min(live.length, ideal) }
}

async function planPositionDeletes(
  table: LoadedTable,
  { deleteFiles, dataFiles }: TableFacts,
): Promise<PlannedActions['positionDeletes']> {
  const { groups } = await planRewritePositionDeletes(table)
  const files = groups.reduce((sum, group) => sum + group.files.length, 0)
  const after = groups.reduce(
    (sum, group) => sum + (group.expectedFiles ?? Math.min(group.files.length, dataFiles.files)),
    0,
  )
  return {
    files,
    bytes: groups.reduce((sum, group) => sum + group.bytes, 0),
    filesAfter: deleteFiles.positionFiles - files + after,
  }
}

async function planManifests(table: LoadedTable, live: number): Promise<PlannedActions['manifests']> {
  const { groups } = await planRewriteManifests(table)
  const manifests = groups.reduce((sum, group) => sum + group.manifests.length, 0)
  const after = groups.reduce((sum, group) => sum + Math.max(1, group.expectedManifests), 0)
  return {
    manifests,
    manifestsAfter: Math.max(Math.min(1, live), live - manifests + after),
    unclustered: groups.some(({ why }) => why === 'unclustered'),
  }
}

async function planSnapshots(table: LoadedTable, settings: HealthSettings, now: Date, signal?: AbortSignal) {
  const { expired, files = {} } = await planExpireSnapshots(table, {
    now,
    olderThan: before(now, settings.maxSnapshotAgeMs),
    retainLast: settings.minSnapshotsToKeep,
    ...(signal !== undefined && { signal }),
  })
  const counted = Object.values(files)
  return {
    expired: expired.length,
    files: counted.reduce((sum, { files: count }) => sum + count, 0),
    bytes: counted.reduce((sum, { bytes }) => sum + bytes, 0),
  }
}

async function planOrphans(
  catalog: Catalog,
  table: LoadedTable,
  settings: HealthSettings,
  now: Date,
  signal?: AbortSignal,
) {
  const { orphans, orphanBytes, orphanShare, isSuspicious } = await planRemoveOrphanFiles(catalog, table, {
    olderThan: before(now, settings.orphanAgeMs),
    ...(signal !== undefined && { signal }),
  })
  return { files: orphans.length, bytes: orphanBytes, share: orphanShare, isSuspicious }
}

/** An action that is refused on this table is none that could be recommended. */
async function unlessRefused<T>(plan: () => Promise<T>): Promise<T | undefined> {
  try {
    return await plan()
  } catch (error) {
    if (error instanceof IcebergError && error.code === 'action_refused') return undefined
    throw error
  }
}
