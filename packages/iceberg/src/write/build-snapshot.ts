import { randomBytes, randomUUID } from 'node:crypto'
import type { LoadedTable } from '../catalogs/catalog.ts'
import type { BuiltCommit } from '../commit/index.ts'
import { IcebergError } from '../errors.ts'
import type { ContentFile, ManifestEntry } from '../manifests/content-file.ts'
import type { ManifestFile } from '../manifests/manifest-file.ts'
import { createManifestWriter, type NewManifestEntry } from '../manifests/write-manifest.ts'
import { writeManifestList } from '../manifests/write-manifest-list.ts'
import type { Snapshot, SnapshotOperation } from '../metadata/snapshot.ts'
import { currentSnapshot, partitionSpecOf, schemaOf, type TableMetadata } from '../metadata/table-metadata.ts'
import type { AvroCodec } from '../avro/codec.ts'
import { metadataLocationOf } from './data-location.ts'
import { entriesOf, manifestsOf, partitionTypesOf } from './live-files.ts'
import { assertBranch, snapshotCommit } from './refs.ts'
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

interface Draft {
  readonly table: LoadedTable
  readonly snapshotId: bigint
  readonly uuid: string
  readonly files: string[]
  readonly counts: SummaryCounts
  manifests: number
}

const targetManifestBytes = 8 * 1024 * 1024

/** Writes the manifests and the manifest list of a new snapshot on a branch, and says how to commit it. */
export async function buildSnapshot(
  table: LoadedTable,
  branch: string,
  change: SnapshotChange,
  attempt: number,
): Promise<BuiltCommit & { snapshotId: bigint }> {
  const { metadata } = table
  const parent = currentSnapshot(metadata, branch)
  const draft: Draft = {
    table,
    snapshotId: newSnapshotId(metadata),
    uuid: randomUUID(),
    files: [...change.added.map((file) => file.filePath), ...(change.files ?? [])],
    counts: new SummaryCounts(),
    manifests: 0,
  }
  const made = draft.files.length
  try {
    assertBranch(metadata, branch)
    const before = await manifestsOf(table, parent)
    const kept = await withoutRemoved(draft, before, change)
    const added = await writeAdded(draft, change)
    const manifests = [...added, ...kept].toSorted(
      (a, b) => Number(a.content === 'deletes') - Number(b.content === 'deletes'),
    )
    const snapshot = await writeSnapshot(draft, parent, manifests, before, change, attempt)
    return {
      ...snapshotCommit(metadata, branch, snapshot),
      files: [...new Set(draft.files)],
      snapshotId: draft.snapshotId,
    }
  } catch (error) {
    await removeFiles(table, [...draft.files.slice(made), ...(change.files ?? [])])
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
  const groups = new Map<string, ContentFile[]>()
  for (const file of change.added) {
    draft.counts.add(file)
    const key = `${file.specId} ${file.content === 'data' ? 'data' : 'deletes'}`
    groups.set(key, [...(groups.get(key) ?? []), file])
  }
  const manifests: ManifestFile[] = []
  for (const files of groups.values()) {
    const entries = files.map((file): NewManifestEntry => {
      const sequenceNumber = file.content === 'data' ? change.dataSequenceNumber : undefined
      return { status: 'added', sequenceNumber, file }
    })
    manifests.push(...(await writeManifests(draft, entries)))
  }
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
        removes(entry) ||
        (removedData.size > 0 && (keptData === 0 || removedData.has(entry.file.referencedDataFile ?? '')))
      kept.push(...(await filterManifest(draft, manifest, goes)))
    }
  }
  return kept
}

async function filterManifest(
  draft: Draft,
  manifest: ManifestFile,
  goes: (entry: ManifestEntry) => boolean,
): Promise<ManifestFile[]> {
  const entries = await entriesOf(draft.table, manifest)
  const removed = new Set(entries.filter(goes))
  if (removed.size === 0) return [manifest]
  for (const { file } of removed) draft.counts.remove(file)
  const rewritten = entries.map((entry): NewManifestEntry => ({
    ...entry,
    status: removed.has(entry) ? 'deleted' : 'existing',
  }))
  return await writeManifests(draft, rewritten, manifest)
}

async function writeManifests(
  draft: Draft,
  entries: readonly NewManifestEntry[],
  replaced?: ManifestFile,
): Promise<ManifestFile[]> {
  const { metadata, storage } = draft.table
  const first = entries[0]?.file
  if (first === undefined) return []
  const target = Number(metadata.properties['commit.manifest.target-size-bytes'] ?? targetManifestBytes)
  const open = () =>
    createManifestWriter({
      formatVersion: metadata.formatVersion,
      content: first.content === 'data' ? 'data' : 'deletes',
      schema: schemaOf(metadata),
      partitionSpec: partitionSpecOf(metadata, first.specId),
      partition: partitionTypesOf(draft.table, first.specId),
      snapshotId: draft.snapshotId,
      codec: manifestCodec(metadata),
      // Its files have row ids of their own by now; a fresh one would only use numbers up.
      ...(replaced?.firstRowId === undefined || metadata.formatVersion < 3 ? {} : { firstRowId: replaced.firstRowId }),
    })
  const written: ManifestFile[] = []
  let writer = open()
  const finish = async (): Promise<void> => {
    const path = metadataLocationOf(metadata, `${draft.uuid}-m${draft.manifests}.avro`)
    draft.manifests += 1
    draft.files.push(path)
    const { content, manifest } = writer.finish(path)
    await storage.write(path, content)
    written.push(manifest)
  }
  for (const entry of entries) {
    if (writer.count > 0 && writer.length >= target) {
      await finish()
      writer = open()
    }
    writer.add(entry)
  }
  await finish()
  return written
}

function manifestCodec(metadata: TableMetadata): AvroCodec {
  const codec = (metadata.properties['write.manifest.compression-codec'] ?? 'gzip').toLowerCase()
  if (codec === 'gzip') return 'deflate'
  if (codec === 'uncompressed' || codec === 'none') return 'null'
  throw new IcebergError(
    'metadata_unsupported',
    `write.manifest.compression-codec is ${codec}, which cannot be written: use gzip or uncompressed`,
  )
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
  draft.files.push(manifestList)
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
