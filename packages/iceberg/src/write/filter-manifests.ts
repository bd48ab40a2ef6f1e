import { fileKey, type ContentFile, type ManifestEntry } from '../manifests/content-file.ts'
import type { ManifestFile } from '../manifests/manifest-file.ts'
import { mayHoldPartition } from '../manifests/partition-summary.ts'
import { partitionTypesOf } from '../manifests/partition-type.ts'
import type { NewManifestEntry } from '../manifests/write-manifest.ts'
import { onlyPath } from '../snapshot/delete.ts'
import { partitionKey } from '../manifests/partition-key.ts'
import { mapOrdered } from '../storage/ordered.ts'
import type { SnapshotChange } from './build-snapshot.ts'
import { entriesOf } from '../snapshot/live-files.ts'
import { notLive } from './not-live.ts'
import {
  contentKey,
  sameTexts,
  type FilteredManifest,
  type PlannedManifest,
  type SnapshotDraft,
} from './snapshot-work.ts'

/** Manifests that are read and written at the same time, and their bytes. */
const parallel = 8
const maxBytes = 16 * 1024 * 1024

/** A file that is to go. A ManifestEntry is one. The more is known of it, the fewer manifests are read. */
export interface RemovedFile {
  readonly file: Pick<ContentFile, 'content' | 'filePath' | 'contentOffset'> &
    Partial<Pick<ContentFile, 'specId' | 'partition'>>
  /** The manifest it was found in. */
  readonly manifestPath?: string | undefined
}

type Goes = (entry: ManifestEntry) => boolean
type Filtered = Map<ManifestFile, FilteredManifest>

/**
 * The manifests of the snapshot before, those with removed files written anew: removed files stay as tombstones. Only
 * manifests that may hold such files are read. Fails unless every file that was named is found.
 */
export async function filterManifests(
  draft: SnapshotDraft,
  before: readonly ManifestFile[],
  change: SnapshotChange,
): Promise<PlannedManifest[]> {
  const live = before.filter((m) => m.addedFilesCount !== 0 || m.existingFilesCount !== 0)
  const { removed = [], removes, mayRemoveFrom = () => true } = change
  if (removed.length === 0 && removes === undefined) return live.map((manifest) => draft.kept(manifest))
  const named = new NamedFiles(draft, live, removed)
  const generation = draft.work.generationOf(named.keys)
  const goes: Goes = (entry) => named.has(entry.file) || removes?.(entry) === true
  // A test may answer otherwise in the next try.
  const question = (what: string): string | undefined => (removes === undefined ? `${generation} ${what}` : undefined)
  const done: Filtered = new Map()
  const filter = (manifests: readonly ManifestFile[], test: Goes, what: string): Promise<void> =>
    filterAll(draft, manifests, test, question(what), done)
  const isConcerned = (manifest: ManifestFile): boolean =>
    named.mayBeIn(manifest) || (removes !== undefined && mayRemoveFrom(manifest))

  const data = live.filter(({ content }) => content === 'data')
  await filter(data.filter(isConcerned), goes, 'data')
  // A summary may be wrong: what it hides is looked for everywhere before it is called missing.
  if (named.missing(done, 'data').length > 0) {
    await filter(
      data.filter((manifest) => !done.has(manifest)),
      goes,
      'data',
    )
  }

  const deletes = live.filter(({ content }) => content === 'deletes')
  const along = deletesThatGoAlong(draft, change, data, done)
  const goesAlong: Goes = (entry) => goes(entry) || along.has(entry.file)
  const what = `deletes ${along.kind}`
  await filter(
    deletes.filter((manifest) => isConcerned(manifest) || along.mayBeIn(manifest)),
    goesAlong,
    what,
  )
  if (named.missing(done, 'deletes').length > 0) {
    await filter(
      deletes.filter((manifest) => !done.has(manifest)),
      goesAlong,
      what,
    )
  }

  const missing = named.missing(done)
  if (missing.length > 0) throw notLive(draft.table, missing)
  for (const { removed: files } of done.values()) for (const file of files) draft.counts.remove(file)
  return live.flatMap((manifest) => done.get(manifest)?.replacedBy ?? [draft.kept(manifest)])
}

/** The files that were named to be removed. */
class NamedFiles {
  readonly keys: readonly string[]
  readonly #byKey: ReadonlyMap<string, RemovedFile>
  readonly #manifestPaths = new Set<string>()
  readonly #partitions: Partitions
  /** Kinds of which a file may be anywhere. */
  readonly #anywhere = new Set<ManifestFile['content']>()

  constructor(draft: SnapshotDraft, manifests: readonly ManifestFile[], removed: readonly RemovedFile[]) {
    this.#byKey = new Map(removed.map((each) => [keyOf(each.file), each]))
    this.keys = [...this.#byKey.keys()].toSorted()
    this.#partitions = new Partitions(draft)
    const there = new Set(manifests.map(({ manifestPath }) => manifestPath))
    for (const { file, manifestPath } of removed) {
      if (manifestPath !== undefined && there.has(manifestPath)) this.#manifestPaths.add(manifestPath)
      else if (file.specId === undefined || file.partition === undefined) this.#anywhere.add(kindOf(file))
      else this.#partitions.add(kindOf(file), file.specId, file.partition)
    }
  }

  has(file: ContentFile): boolean {
    return this.#byKey.has(keyOf(file))
  }

  mayBeIn(manifest: ManifestFile): boolean {
    return (
      this.#manifestPaths.has(manifest.manifestPath) ||
      this.#anywhere.has(manifest.content) ||
      this.#partitions.mayBeIn(manifest)
    )
  }

  /** The paths of those that were not found yet. */
  missing(done: Filtered, kind?: ManifestFile['content']): string[] {
    const found = new Set([...done.values()].flatMap(({ removedKeys }) => removedKeys))
    return [...this.#byKey]
      .filter(([key, { file }]) => !found.has(key) && (kind === undefined || kindOf(file) === kind))
      .map(([, { file }]) => file.filePath)
  }
}

/** Partitions that manifests are asked for. */
class Partitions {
  readonly #draft: SnapshotDraft
  readonly #byKind = new Map<string, Map<string, ContentFile['partition']>>()

  constructor(draft: SnapshotDraft) {
    this.#draft = draft
  }

  add(kind: ManifestFile['content'], specId: number, partition: ContentFile['partition']): void {
    const key = `${kind} ${specId}`
    const partitions = this.#byKind.get(key) ?? new Map<string, ContentFile['partition']>()
    partitions.set(partitionKey(specId, partition), partition)
    this.#byKind.set(key, partitions)
  }

  mayBeIn({ content, partitionSpecId, partitions: summaries }: ManifestFile): boolean {
    const partitions = this.#byKind.get(`${content} ${partitionSpecId}`)
    if (partitions === undefined) return false
    const types = partitionTypesOf(this.#draft.table.metadata, partitionSpecId)
    for (const partition of partitions.values()) if (mayHoldPartition(summaries, types, partition)) return true
    return false
  }
}

/** Deletes that have nothing left to apply to, once data files are removed. */
interface GoingAlong {
  /** none: no data file is removed; own: those for removed files only; all: no older data file is left. */
  readonly kind: 'none' | 'own' | 'all'
  has(file: ContentFile): boolean
  mayBeIn(manifest: ManifestFile): boolean
}

function deletesThatGoAlong(
  draft: SnapshotDraft,
  change: SnapshotChange,
  data: readonly ManifestFile[],
  done: Filtered,
): GoingAlong {
  const paths = new Set<string>()
  const partitions = new Partitions(draft)
  for (const { removed } of done.values()) {
    for (const { filePath, specId, partition } of removed) {
      paths.add(filePath)
      partitions.add('deletes', specId, partition)
    }
  }
  if (paths.size === 0) return { kind: 'none', has: () => false, mayBeIn: () => false }
  const isKept = (manifest: ManifestFile): boolean => (done.get(manifest)?.keptCount ?? 1) > 0
  const addsOlder = change.dataSequenceNumber !== undefined && change.added.some((file) => file.content === 'data')
  if (!addsOlder && !data.some(isKept)) return { kind: 'all', has: () => true, mayBeIn: () => true }
  return {
    kind: 'own',
    has: (file) => isOnlyFor(file, paths),
    mayBeIn: (manifest) => partitions.mayBeIn(manifest),
  }
}

function isOnlyFor(file: ContentFile, removed: ReadonlySet<string>): boolean {
  const path = file.content === 'position-deletes' ? onlyPath(file) : undefined
  return path !== undefined && removed.has(path)
}

function kindOf({ content }: Pick<ContentFile, 'content'>): ManifestFile['content'] {
  return content === 'data' ? 'data' : 'deletes'
}

function keyOf(file: RemovedFile['file']): string {
  return `${kindOf(file)} ${fileKey(file)}`
}

async function filterAll(
  draft: SnapshotDraft,
  manifests: readonly ManifestFile[],
  goes: Goes,
  question: string | undefined,
  done: Filtered,
): Promise<void> {
  const work = async (manifest: ManifestFile) => ({
    manifest,
    filtered: await filterOne(draft, manifest, goes, question),
  })
  const weights = { of: (manifest: ManifestFile) => manifest.manifestLength, max: maxBytes }
  for await (const { manifest, filtered } of mapOrdered(manifests, parallel, work, weights)) {
    done.set(manifest, filtered)
  }
}

async function filterOne(
  draft: SnapshotDraft,
  manifest: ManifestFile,
  goes: Goes,
  question: string | undefined,
): Promise<FilteredManifest> {
  const known = draft.work.filtered.get(contentKey(manifest))
  if (known !== undefined && question !== undefined && known.question === question) return known
  draft.signal?.throwIfAborted()
  const partition = await draft.typesOf(manifest.partitionSpecId)
  const entries = await entriesOf(draft.table, manifest, { partition })
  const removed = new Set(entries.filter(goes))
  const removedKeys = [...removed].map(({ file }) => keyOf(file))
  const isKnown = known !== undefined && sameTexts(known.removedKeys, removedKeys)
  const filtered: FilteredManifest = {
    question,
    removed: [...removed].map(({ file }) => withoutStatistics(file)),
    removedKeys,
    keptCount: entries.length - removed.size,
    replacedBy: isKnown ? known.replacedBy : await replacement(draft, entries, removed),
  }
  draft.work.filtered.set(contentKey(manifest), filtered)
  return filtered
}

async function replacement(
  draft: SnapshotDraft,
  entries: readonly ManifestEntry[],
  removed: ReadonlySet<ManifestEntry>,
): Promise<PlannedManifest[] | undefined> {
  if (removed.size === 0) return undefined
  const rewritten = entries.map((entry): NewManifestEntry => ({
    ...entry,
    status: removed.has(entry) ? 'deleted' : 'existing',
  }))
  const planned = (await draft.encode(rewritten)).map((encoded) => draft.rewritten(encoded))
  for (const each of planned) await draft.storeIfLarge(each)
  return planned
}

/** Statistics hold on to the block of the manifest that they are in. */
function withoutStatistics(file: ContentFile): ContentFile {
  return {
    ...file,
    columnSizes: undefined,
    valueCounts: undefined,
    nullValueCounts: undefined,
    nanValueCounts: undefined,
    lowerBounds: undefined,
    upperBounds: undefined,
  }
}
