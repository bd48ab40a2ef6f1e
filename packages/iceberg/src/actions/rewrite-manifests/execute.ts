import { randomUUID } from 'node:crypto'
import { tableName, type LoadedTable } from '../../catalogs/catalog.ts'
import { commitTable } from '../../commit/index.ts'
import { IcebergError } from '../../errors.ts'
import type { ManifestEntry } from '../../manifests/content-file.ts'
import type { ManifestFile } from '../../manifests/manifest-file.ts'
import type { PartitionTypeField } from '../../manifests/partition-type.ts'
import { currentSnapshot, mainBranch, partitionSpecOf } from '../../metadata/table-metadata.ts'
import { manifestsOf, partitionTypesIn } from '../../snapshot/live-files.ts'
import { readManifests } from '../../snapshot/read-manifests.ts'
import { buildSnapshot } from '../../write/build-snapshot.ts'
import { metadataLocationOf } from '../../write/data-location.ts'
import { removeFiles } from '../../write/remove-files.ts'
import { SnapshotWork } from '../../write/snapshot-work.ts'
import { commitOptionsOf, PhaseTimer, type ActionCosts, type ActionRun } from '../action.ts'
import { assertPlannedFor } from '../same-table.ts'
import { clusteredManifests } from './clustered-manifests.ts'
import { compareEntries, orderFields } from './partition-order.ts'
import type { ManifestGroup, RewriteManifestsPlan } from './plan.ts'

// Every live entry goes into a new manifest exactly as it is: with its sequence numbers, the snapshot that added it and
// its row ids. The new manifests depend on nothing else, so they stay good when the commit meets another, as long as
// the manifests they replace are still there.

/** The columns of Spark's procedure, and what it took. */
export interface RewriteManifestsResult extends ActionCosts {
  readonly rewrittenManifestsCount: number
  readonly addedManifestsCount: number
  /** Undefined when there was nothing to do. */
  readonly snapshotId?: string
}

/** Carries out a plan of `planRewriteManifests`, on the main branch. */
export async function executeRewriteManifests(
  table: LoadedTable,
  plan: RewriteManifestsPlan,
  run: ActionRun,
): Promise<RewriteManifestsResult> {
  run.signal?.throwIfAborted()
  assertPlannedFor(table, plan.table)
  const timer = new PhaseTimer()
  const replaced = plan.groups.flatMap(({ manifests }) => manifests.map(({ path }) => path))
  if (replaced.length === 0) return resultOf(timer, { replaced: 0, added: [], bytesRead: 0 })
  const made: ManifestFile[] = []
  const work = new SnapshotWork()
  let isSent = false
  try {
    const { entries, lines } = await rewriteGroups(table, plan, run, timer, { snapshotId: work.snapshotId, made })
    const summary = { ...run.summary, 'entries-processed': String(entries) }
    const outcome = await timer.time('commit', () =>
      commitTable(
        run.catalog,
        table.identifier,
        async (fresh, attempt) => {
          await assertSameBasis(table, fresh, lines)
          const rewritten = { replaced, by: made }
          const change = { added: [], rewritten, operation: 'replace', summary } as const
          const built = await buildSnapshot(fresh, mainBranch, change, attempt, { work, signal: run.signal })
          isSent = true
          return built
        },
        commitOptionsOf(run, table.metadata.tableUuid),
      ),
    )
    if (outcome.outcome === 'applied') {
      const snapshot = outcome.built.updates.find((update) => update.action === 'add-snapshot')?.snapshot
      const bytesRead = plan.groups.reduce((sum, { bytes }) => sum + bytes, 0)
      return resultOf(timer, { replaced: replaced.length, added: made, bytesRead, snapshotId: snapshot?.snapshotId })
    }
    if (outcome.outcome === 'unknown') throw outcome.error
    throw outcome.error ?? new IcebergError('commit_conflict', `${tableName(table.identifier)} was not changed.`)
  } catch (error) {
    // Once they were sent it is for the commit to say what may go.
    if (!isSent) {
      await removeFiles(
        table,
        made.map(({ manifestPath }) => manifestPath),
      )
    }
    throw error
  }
}

/**
 * Entries were written for the format version and with the row ids that their manifests had when they were read. Neither
 * changes the path of a manifest: an upgrade makes no snapshot, and row ids come with the next append after one.
 */
async function assertSameBasis(table: LoadedTable, fresh: LoadedTable, lines: readonly ManifestFile[]): Promise<void> {
  const now = await manifestsOf(fresh, currentSnapshot(fresh.metadata, mainBranch))
  const rowIds = new Map(now.map(({ manifestPath, firstRowId }) => [manifestPath, firstRowId]))
  const isSame =
    fresh.metadata.formatVersion === table.metadata.formatVersion &&
    // Those that are gone have their own error.
    lines.every(({ manifestPath: path, firstRowId }) => !rowIds.has(path) || rowIds.get(path) === firstRowId)
  if (isSame) return
  const name = tableName(table.identifier)
  throw new IcebergError('commit_conflict', `${name} was upgraded while its manifests were rewritten. Plan again.`, {
    details: { table: name },
  })
}

/** Writes the new manifests, and returns how many entries they have and which manifests they replace. */
async function rewriteGroups(
  table: LoadedTable,
  plan: RewriteManifestsPlan,
  run: ActionRun,
  timer: PhaseTimer,
  { snapshotId, made }: { readonly snapshotId: bigint; readonly made: ManifestFile[] },
): Promise<{ entries: number; lines: ManifestFile[] }> {
  const { metadata } = table
  const manifests = await manifestsOf(table, currentSnapshot(metadata, mainBranch))
  const types = await partitionTypesIn(table, manifests)(plan.specId)
  const fields = orderFields(partitionSpecOf(metadata, plan.specId), types, plan.sortBy)
  const uuid = randomUUID()
  let number = 0
  const newPath = (): string => metadataLocationOf(metadata, `optimized-m-${uuid}-${(number += 1)}.avro`)
  let total = 0
  const all: ManifestFile[] = []
  const progress = progressOf(plan, run)
  for (const group of plan.groups) {
    const lines = linesOf(table, manifests, group)
    all.push(...lines)
    const entries = await timer.time('read', () => readEntries(table, lines, types, run, progress))
    assertComplete(table, lines, entries.length)
    await timer.time('write', async () => {
      const sorted = entries.toSorted(compareEntries(fields))
      const options = { table, snapshotId, partition: types, targetBytes: plan.targetBytes, newPath }
      for (const { manifest, content } of clusteredManifests(sorted, options)) {
        run.signal?.throwIfAborted()
        made.push(manifest) // before it is there: it is removed if this fails
        await table.storage.write(manifest.manifestPath, content)
      }
    })
    total += entries.length
  }
  return { entries: total, lines: all }
}

/** What the manifest list says of the manifests of a group. */
function linesOf(table: LoadedTable, manifests: readonly ManifestFile[], group: ManifestGroup): ManifestFile[] {
  const byPath = new Map(manifests.map((manifest) => [manifest.manifestPath, manifest]))
  return group.manifests.map(({ path }) => {
    const line = byPath.get(path)
    if (line !== undefined) return line
    throw new IcebergError(
      'commit_conflict',
      `The manifest ${path} is not in ${tableName(table.identifier)} any more: another commit has replaced it since the plan ` +
        'was made. Nothing was changed; plan again.',
      { details: { manifests: [path] } },
    )
  })
}

async function readEntries(
  table: LoadedTable,
  lines: readonly ManifestFile[],
  types: readonly PartitionTypeField[],
  { signal }: ActionRun,
  onRead: (manifest: ManifestFile) => void,
): Promise<ManifestEntry[]> {
  const all: ManifestEntry[] = []
  const options = { partitionOf: () => types, statistics: true, signal }
  let last: ManifestFile | undefined
  for await (const { manifest, entries } of readManifests(table.storage, lines, options)) {
    for (const entry of entries) all.push(entry)
    if (manifest !== last) onRead(manifest)
    last = manifest
  }
  return all
}

function assertComplete(table: LoadedTable, lines: readonly ManifestFile[], read: number): void {
  let counted = 0
  for (const { addedFilesCount, existingFilesCount } of lines) {
    if (addedFilesCount === undefined || existingFilesCount === undefined) return
    counted += addedFilesCount + existingFilesCount
  }
  if (counted === read) return
  throw new IcebergError(
    'manifest_invalid',
    `The manifests of ${tableName(table.identifier)} have ${read} live files, and its manifest list says ${counted}. ` +
      'Nothing was changed; do not rewrite this table before it is known why.',
  )
}

function progressOf({ groups }: RewriteManifestsPlan, { onProgress }: ActionRun): (manifest: ManifestFile) => void {
  const files = { done: 0, total: groups.reduce((sum, { manifests }) => sum + manifests.length, 0) }
  const bytes = { done: 0, total: groups.reduce((sum, group) => sum + group.bytes, 0) }
  return (manifest) => {
    files.done += 1
    bytes.done += manifest.manifestLength
    onProgress?.({ phase: 'read', files: { ...files }, bytes: { ...bytes } })
  }
}

function resultOf(
  timer: PhaseTimer,
  of: {
    readonly replaced: number
    readonly added: readonly ManifestFile[]
    readonly bytesRead: number
    readonly snapshotId?: bigint | undefined
  },
): RewriteManifestsResult {
  return {
    rewrittenManifestsCount: of.replaced,
    addedManifestsCount: of.added.length,
    ...(of.snapshotId !== undefined && { snapshotId: String(of.snapshotId) }),
    bytesRead: of.bytesRead,
    bytesWritten: of.added.reduce((sum, { manifestLength }) => sum + manifestLength, 0),
    phaseSeconds: timer.seconds,
  }
}
