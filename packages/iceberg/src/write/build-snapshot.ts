import { randomBytes, randomUUID } from 'node:crypto'
import type { LoadedTable } from '../catalogs/catalog.ts'
import type { BuiltCommit } from '../commit/index.ts'
import { fileKey, type ContentFile, type ManifestEntry } from '../manifests/content-file.ts'
import type { ManifestFile } from '../manifests/manifest-file.ts'
import type { NewManifestEntry } from '../manifests/write-manifest.ts'
import { writeManifestList } from '../manifests/write-manifest-list.ts'
import type { Snapshot, SnapshotOperation } from '../metadata/snapshot.ts'
import { currentSnapshot, type TableMetadata } from '../metadata/table-metadata.ts'
import { assertWritable } from '../metadata/validate.ts'
import { onlyPath } from '../snapshot/delete.ts'
import { metadataLocationOf } from './data-location.ts'
import { entriesOf, manifestsOf, partitionTypesIn } from '../snapshot/live-files.ts'
import { mergeManifests } from './merge-manifests.ts'
import { writeManifests, type Draft } from './new-manifests.ts'
import { assertBranch, snapshotCommit } from '../metadata/refs.ts'
import { removeFiles } from './remove-files.ts'
import { SummaryCounts } from './snapshot-summary.ts'

/** What a new snapshot does to the files of the one before. */
export interface SnapshotChange {
  readonly added: readonly ContentFile[]
  /** Which live files go. Deletes that apply to nothing but removed data files go along. */
  readonly removes?: (entry: ManifestEntry) => boolean
  /** Spares reading manifests that hold nothing to remove. */
  readonly mayRemoveFrom?: (manifest: ManifestFile) => boolean
  /** Default: by what is added and removed. */
  readonly operation?: SnapshotOperation
  /** The number that added data files take for deletes to apply by, when they hold rows of older files. */
  readonly dataSequenceNumber?: bigint
  /** Of the snapshot's summary, beside the counts. */
  readonly summary?: Readonly<Record<string, string>>
  /** Files that were made for this try alone, so that they go when it cannot be built. */
  readonly files?: readonly string[]
}

/** Writes the manifests and the manifest list of a new snapshot on a branch, and says how to commit it. */
export async function buildSnapshot(
  table: LoadedTable,
  branch: string,
  change: SnapshotChange,
  attempt: number,
): Promise<BuiltCommit & { snapshotId: bigint }> {
  const { metadata } = table
  const made = new Set(change.files)
  try {
    assertWritable(metadata)
    assertBranch(metadata, branch)
    const parent = currentSnapshot(metadata, branch)
    const before = await manifestsOf(table, parent)
    const draft: Draft = {
      table,
      snapshotId: newSnapshotId(metadata),
      uuid: randomUUID(),
      files: made,
      counts: new SummaryCounts(),
      written: new Map(),
      typesOf: partitionTypesIn(table, before),
      manifests: 0,
    }
    const kept = await withoutRemoved(draft, before, change)
    const manifests = [...(await writeAdded(draft, change)), ...kept]
    const merged = [
      ...(await mergeManifests(
        draft,
        manifests.filter(({ content }) => content === 'data'),
      )),
      ...(await mergeManifests(
        draft,
        manifests.filter(({ content }) => content === 'deletes'),
      )),
    ]
    const snapshot = await writeSnapshot(draft, parent, merged, before, change, attempt)
    return {
      ...snapshotCommit(metadata, branch, snapshot),
      files: [...new Set([...change.added.map((file) => file.filePath), ...made])],
      snapshotId: draft.snapshotId,
    }
  } catch (error) {
    await removeFiles(table, [...made])
    throw error
  }
}

function newSnapshotId(metadata: TableMetadata): bigint {
  for (;;) {
    const id = BigInt.asUintN(63, randomBytes(8).readBigUInt64BE())
    if (id !== 0n && metadata.snapshots.every((snapshot) => snapshot.snapshotId !== id)) return id
  }
}

async function writeAdded(draft: Draft, change: SnapshotChange): Promise<ManifestFile[]> {
  const groups = new Map<string, NewManifestEntry[]>()
  // A file that is named twice is one file.
  for (const file of new Map(change.added.map((added) => [fileKey(added), added])).values()) {
    draft.counts.add(file)
    const key = `${file.specId} ${file.content === 'data' ? 'data' : 'deletes'}`
    const sequenceNumber = file.content === 'data' ? change.dataSequenceNumber : undefined
    const entry: NewManifestEntry = { status: 'added', sequenceNumber, file }
    const group = groups.get(key)
    if (group === undefined) groups.set(key, [entry])
    else group.push(entry)
  }
  const manifests: ManifestFile[] = []
  for (const entries of groups.values()) manifests.push(...(await writeManifests(draft, entries)))
  return manifests
}

/** The manifests of the snapshot before, those with removed files written anew: removed files stay as tombstones. */
async function withoutRemoved(
  draft: Draft,
  manifests: readonly ManifestFile[],
  change: SnapshotChange,
): Promise<ManifestFile[]> {
  const live = manifests.filter((m) => m.addedFilesCount !== 0 || m.existingFilesCount !== 0)
  const { removes, mayRemoveFrom = () => true } = change
  if (removes === undefined) return live
  const removedData = new Set<string>()
  const kept: ManifestFile[] = []
  let keptData = change.added.some((file) => file.content === 'data' && change.dataSequenceNumber !== undefined) ? 1 : 0
  for (const manifest of live.filter((m) => m.content === 'data')) {
    if (!mayRemoveFrom(manifest)) {
      kept.push(manifest)
      keptData += 1
      continue
    }
    const filtered = await filterManifest(draft, manifest, (entry) => {
      const goes = removes(entry)
      if (goes) removedData.add(entry.file.filePath)
      else keptData += 1
      return goes
    })
    kept.push(...filtered)
  }
  for (const manifest of live.filter((m) => m.content === 'deletes')) {
    if (removedData.size === 0 && !mayRemoveFrom(manifest)) kept.push(manifest)
    else {
      const goes = (entry: ManifestEntry): boolean =>
        // Once no older data file is left, no delete has anything to apply to.
        removes(entry) || (removedData.size > 0 && (keptData === 0 || isOnlyFor(entry.file, removedData)))
      kept.push(...(await filterManifest(draft, manifest, goes)))
    }
  }
  return kept
}

function isOnlyFor(file: ContentFile, removed: ReadonlySet<string>): boolean {
  const path = file.content === 'position-deletes' ? onlyPath(file) : undefined
  return path !== undefined && removed.has(path)
}

async function filterManifest(
  draft: Draft,
  manifest: ManifestFile,
  goes: (entry: ManifestEntry) => boolean,
): Promise<ManifestFile[]> {
  const partition = await draft.typesOf(manifest.partitionSpecId)
  const entries = await entriesOf(draft.table, manifest, { partition })
  const removed = new Set(entries.filter(goes))
  if (removed.size === 0) return [manifest]
  for (const { file } of removed) draft.counts.remove(file)
  const rewritten = entries.map((entry): NewManifestEntry => ({
    ...entry,
    status: removed.has(entry) ? 'deleted' : 'existing',
  }))
  return await writeManifests(draft, rewritten)
}

async function writeSnapshot(
  draft: Draft,
  parent: Snapshot | undefined,
  given: readonly ManifestFile[],
  before: readonly ManifestFile[],
  change: SnapshotChange,
  attempt: number,
): Promise<Snapshot> {
  const { metadata, storage } = draft.table
  const { snapshotId, uuid, counts } = draft
  const { formatVersion } = metadata
  const sequenceNumber = formatVersion === 1 ? 0n : metadata.lastSequenceNumber + 1n
  const manifestList = metadataLocationOf(metadata, `snap-${snapshotId}-${attempt}-${uuid}.avro`)
  const { content, manifests, addedRows } = writeManifestList(given, {
    formatVersion,
    snapshotId,
    parentSnapshotId: parent?.snapshotId,
    sequenceNumber,
    ...(formatVersion >= 3 && { firstRowId: metadata.nextRowId }),
  })
  draft.files.add(manifestList)
  await storage.write(manifestList, content)
  const created = manifests.filter((manifest) => manifest.addedSnapshotId === snapshotId).length
  const survivors = new Set(manifests.map((manifest) => manifest.manifestPath))
  const summary = counts.finish(change.operation ?? counts.operation, parent, {
    ...change.summary,
    'engine-name': 'fencepost',
    'manifests-created': String(created),
    'manifests-kept': String(manifests.length - created),
    'manifests-replaced': String(before.filter((manifest) => !survivors.has(manifest.manifestPath)).length),
  })
  return {
    snapshotId,
    ...(parent !== undefined && { parentSnapshotId: parent.snapshotId }),
    sequenceNumber,
    // Readers refuse a log whose times go back.
    timestampMs: Math.max(Date.now(), metadata.lastUpdatedMs),
    manifestList,
    summary,
    schemaId: metadata.currentSchemaId,
    ...(formatVersion >= 3 && { firstRowId: metadata.nextRowId, addedRows }),
  }
}
