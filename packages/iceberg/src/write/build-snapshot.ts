import { randomUUID } from 'node:crypto'
import { tableName, type LoadedTable } from '../catalogs/catalog.ts'
import type { BuiltCommit } from '../commit/index.ts'
import { IcebergError } from '../errors.ts'
import { fileKey, type ContentFile, type ManifestEntry } from '../manifests/content-file.ts'
import type { ManifestFile } from '../manifests/manifest-file.ts'
import type { NewManifestEntry } from '../manifests/write-manifest.ts'
import { writeManifestList } from '../manifests/write-manifest-list.ts'
import type { Snapshot, SnapshotOperation } from '../metadata/snapshot.ts'
import { currentSnapshot } from '../metadata/table-metadata.ts'
import { assertWritable } from '../metadata/validate.ts'
import { forEachLimited } from '../storage/each.ts'
import { metadataLocationOf } from './data-location.ts'
import { filterManifests, type RemovedFile } from './filter-manifests.ts'
import { manifestsOf, partitionTypesIn } from '../snapshot/live-files.ts'
import { mergeManifests } from './merge-manifests.ts'
import { assertBranch, snapshotCommit } from '../metadata/refs.ts'
import { removeFiles } from './remove-files.ts'
import { SummaryCounts } from './snapshot-summary.ts'
import { sameTexts, SnapshotDraft, SnapshotWork, type PlannedManifest } from './snapshot-work.ts'

// A snapshot is made in two steps. First it is planned which manifests are kept, which are written anew without removed
// files, which are added and which are merged; manifests are encoded for it, and most wait in memory. Then those that
// the snapshot has are stored, and the manifest list.

/** What a new snapshot does to the files of the one before. */
export interface SnapshotChange {
  readonly added: readonly ContentFile[]
  /**
   * Live files that go. Each must be found, else the change fails with file_not_live and nothing is changed. Deletes that
   * apply to nothing but removed data files go along.
   */
  readonly removed?: readonly RemovedFile[]
  /** Which other live files go, by a test. It is asked again in every try, so manifests are read again for it. */
  readonly removes?: (entry: ManifestEntry) => boolean
  /** Spares reading manifests that hold nothing that `removes` picks. */
  readonly mayRemoveFrom?: (manifest: ManifestFile) => boolean
  /** Manifests whose live files are in others now, which are stored already. Those replaced must still be there. */
  readonly rewritten?: RewrittenManifests
  /** Default: by what is added and removed. */
  readonly operation?: SnapshotOperation
  /** The number that added data files take for deletes to apply by, when they hold rows of older files. */
  readonly dataSequenceNumber?: bigint
  /** The same for an added delete file that holds older deletes; undefined: the number of the commit. */
  readonly deleteSequenceNumber?: (file: ContentFile) => bigint | undefined
  /** Of the snapshot's summary, beside the counts. */
  readonly summary?: Readonly<Record<string, string>>
  /** Files that were made for this try alone, so that they go when it cannot be built. */
  readonly files?: readonly string[]
}

export interface RewrittenManifests {
  readonly replaced: readonly string[]
  readonly by: readonly ManifestFile[]
}

export interface BuildSnapshotOptions {
  /** What earlier tries of the same change have made. Give all tries the same, and no other change. Default: nothing. */
  readonly work?: SnapshotWork
  readonly signal?: AbortSignal | undefined
}

/** Manifests that are stored at the same time. */
const parallelWrites = 8

/** Writes the manifests and the manifest list of a new snapshot on a branch, and says how to commit it. */
export async function buildSnapshot(
  table: LoadedTable,
  branch: string,
  change: SnapshotChange,
  attempt: number,
  { work = new SnapshotWork(), signal }: BuildSnapshotOptions = {},
): Promise<BuiltCommit & { snapshotId: bigint }> {
  const { metadata } = table
  const ownFiles = new Set(change.files)
  try {
    assertWritable(metadata)
    assertBranch(metadata, branch)
    work.begin(metadata)
    const parent = currentSnapshot(metadata, branch)
    const before = await manifestsOf(table, parent)
    const draft = new SnapshotDraft({
      table,
      work,
      signal,
      counts: new SummaryCounts(),
      typesOf: partitionTypesIn(table, before),
      ownFiles,
    })
    const manifests = await planManifests(draft, before, change)
    await forEachLimited(manifests, parallelWrites, (planned) => draft.store(planned))
    const snapshot = await writeSnapshot(draft, parent, manifests, before, change, attempt)
    return {
      ...snapshotCommit(metadata, branch, snapshot),
      files: [...new Set([...change.added.map((file) => file.filePath), ...draft.files])],
      snapshotId: draft.snapshotId,
    }
  } catch (error) {
    // Only what this try made: the commit of an earlier one may yet turn out to be applied.
    work.forget()
    await removeFiles(table, [...ownFiles])
    throw error
  }
}

/** The manifests of the snapshot, in the order of its manifest list. Most of the new ones are not stored yet. */
async function planManifests(
  draft: SnapshotDraft,
  before: readonly ManifestFile[],
  change: SnapshotChange,
): Promise<PlannedManifest[]> {
  const { rewritten } = change
  if (rewritten !== undefined) return replaceManifests(draft, before, rewritten)
  const kept = await filterManifests(draft, before, change)
  const planned = [...(await planAdded(draft, change)), ...kept]
  const ofKind = (kind: ManifestFile['content']): PlannedManifest[] =>
    planned.filter(({ manifest }) => manifest.content === kind)
  return [...(await mergeManifests(draft, ofKind('data'))), ...(await mergeManifests(draft, ofKind('deletes')))]
}

function replaceManifests(
  draft: SnapshotDraft,
  before: readonly ManifestFile[],
  { replaced, by }: RewrittenManifests,
): PlannedManifest[] {
  const there = new Set(before.map(({ manifestPath }) => manifestPath))
  const gone = replaced.filter((path) => !there.has(path))
  if (gone.length > 0) {
    const table = tableName(draft.table.identifier)
    throw new IcebergError(
      'commit_conflict',
      `${gone.length} manifests of ${table} that were rewritten are gone: another commit came first. ` +
        `Nothing was changed; plan again. The first of them is ${gone[0]}.`,
      { details: { table, manifests: gone } },
    )
  }
  const goes = new Set(replaced)
  const kept = before.filter(({ manifestPath }) => !goes.has(manifestPath)).map((manifest) => draft.kept(manifest))
  const added = by.map((manifest): PlannedManifest => ({ ...draft.kept(manifest), isNew: true }))
  return [...added, ...kept]
}

async function planAdded(draft: SnapshotDraft, change: SnapshotChange): Promise<PlannedManifest[]> {
  const groups = new Map<string, NewManifestEntry[]>()
  // A file that is named twice is one file.
  for (const file of new Map(change.added.map((added) => [fileKey(added), added])).values()) {
    draft.counts.add(file)
    const key = `${file.specId} ${file.content === 'data' ? 'data' : 'deletes'}`
    const sequenceNumber = file.content === 'data' ? change.dataSequenceNumber : change.deleteSequenceNumber?.(file)
    const entry: NewManifestEntry = { status: 'added', sequenceNumber, file }
    const group = groups.get(key)
    if (group === undefined) groups.set(key, [entry])
    else group.push(entry)
  }
  const planned: PlannedManifest[] = []
  for (const [group, entries] of groups) {
    const keys = entries.map(({ file, sequenceNumber }) => `${fileKey(file)} ${sequenceNumber}`)
    const known = draft.work.added.get(group)
    const manifests = known !== undefined && sameTexts(known.keys, keys) ? known.manifests : await added(draft, entries)
    draft.work.added.set(group, { keys, manifests })
    planned.push(...manifests)
  }
  return planned
}

async function added(draft: SnapshotDraft, entries: readonly NewManifestEntry[]): Promise<PlannedManifest[]> {
  const planned = (await draft.encode(entries)).map(({ manifest, content, entries: own }): PlannedManifest => ({
    manifest,
    isNew: true,
    content,
    entries: async () => own,
  }))
  for (const each of planned) await draft.storeIfLarge(each)
  return planned
}

async function writeSnapshot(
  draft: SnapshotDraft,
  parent: Snapshot | undefined,
  planned: readonly PlannedManifest[],
  before: readonly ManifestFile[],
  change: SnapshotChange,
  attempt: number,
): Promise<Snapshot> {
  const { metadata, storage } = draft.table
  const { snapshotId, counts } = draft
  const { formatVersion } = metadata
  const sequenceNumber = formatVersion === 1 ? 0n : metadata.lastSequenceNumber + 1n
  const manifestList = metadataLocationOf(metadata, `snap-${snapshotId}-${attempt}-${randomUUID()}.avro`)
  const { content, manifests, addedRows } = writeManifestList(
    planned.map(({ manifest }) => manifest),
    {
      formatVersion,
      snapshotId,
      parentSnapshotId: parent?.snapshotId,
      sequenceNumber,
      ...(formatVersion >= 3 && { firstRowId: metadata.nextRowId }),
    },
  )
  draft.files.add(manifestList)
  draft.ownFiles.add(manifestList)
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
