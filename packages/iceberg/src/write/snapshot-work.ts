import { randomBytes, randomUUID } from 'node:crypto'
import type { LoadedTable } from '../catalogs/catalog.ts'
import type { ContentFile } from '../manifests/content-file.ts'
import type { ManifestFile } from '../manifests/manifest-file.ts'
import type { PartitionTypeField } from '../manifests/partition-type.ts'
import { readManifest } from '../manifests/read-manifest.ts'
import type { NewManifestEntry } from '../manifests/write-manifest.ts'
import type { TableMetadata } from '../metadata/table-metadata.ts'
import { metadataLocationOf } from './data-location.ts'
import { entriesOf } from '../snapshot/live-files.ts'
import { encodeManifests, manifestCodec, targetManifestBytes, type EncodedManifest } from './new-manifests.ts'
import { removeFiles } from './remove-files.ts'
import type { SummaryCounts } from './snapshot-summary.ts'

// A commit that meets another is built again on the fresh table, of which most manifests are those of the try before.
// What was made of them then is kept: a manifest without removed files by the one it replaces, a merged one by those in
// it, new files by their paths. All tries make a snapshot of the same id, as in Iceberg's Java, so a manifest names its
// snapshot and still serves the next try. Sequence numbers and row ids are inherited from the manifest list of the try.
// At most one try is ever applied: catalogs refuse an id that is taken. Which one it was, the manifest list tells.
// A file belongs to every try that uses it, and each lists it: `commitTable` removes it once no try can need it.

/** Bytes of manifests that wait to be stored until it is known which are merged. */
const maxWaitingBytes = 32 * 1024 * 1024

/** A manifest of the snapshot being made: of the one before, or new. */
export interface PlannedManifest {
  readonly manifest: ManifestFile
  readonly isNew: boolean
  /** Of a new one, until it is stored. */
  content: Buffer | undefined
  /** To be merged with others. What was there before is no news, and what had gone is left out. */
  readonly entries: () => Promise<readonly NewManifestEntry[]>
}

/** What became of a manifest of the snapshot before. */
export interface FilteredManifest {
  /** What was asked; the same question has the same answer. Undefined: it must be asked again. */
  readonly question: string | undefined
  /** Without statistics. */
  readonly removed: readonly ContentFile[]
  readonly removedKeys: readonly string[]
  readonly keptCount: number
  /** What takes its place; undefined: nothing was removed, and it stays. */
  readonly replacedBy: readonly PlannedManifest[] | undefined
}

/** What is made for one change, kept over the tries to commit it. */
export class SnapshotWork {
  readonly snapshotId = newSnapshotId()
  readonly filtered = new Map<string, FilteredManifest>()
  readonly merged = new Map<string, readonly PlannedManifest[]>()
  readonly added = new Map<
    string,
    { readonly keys: readonly string[]; readonly manifests: readonly PlannedManifest[] }
  >()
  readonly #uuid = randomUUID()
  #made = 0
  #basis = ''
  #removedKeys: readonly string[] = []
  #generation = 0

  /** Begins a try; what does not fit the table any more is forgotten. */
  begin(metadata: TableMetadata): void {
    const { formatVersion, currentSchemaId } = metadata
    const basis = `${formatVersion} ${currentSchemaId} ${manifestCodec(metadata)} ${targetManifestBytes(metadata)}`
    if (basis !== this.#basis) this.forget()
    this.#basis = basis
  }

  forget(): void {
    this.filtered.clear()
    this.merged.clear()
    this.added.clear()
  }

  /** A text that is another one whenever other files are to be removed than in the try before. */
  generationOf(removedKeys: readonly string[]): string {
    if (!sameTexts(removedKeys, this.#removedKeys)) this.#generation += 1
    this.#removedKeys = removedKeys
    return String(this.#generation)
  }

  newPath(metadata: TableMetadata): string {
    this.#made += 1
    return metadataLocationOf(metadata, `${this.#uuid}-m${this.#made - 1}.avro`)
  }
}

/** One try to make a snapshot. */
export class SnapshotDraft {
  readonly table: LoadedTable
  readonly snapshotId: bigint
  readonly work: SnapshotWork
  readonly counts: SummaryCounts
  /** Of the values in the partitions of a spec. */
  readonly typesOf: (specId: number) => Promise<readonly PartitionTypeField[]>
  readonly signal: AbortSignal | undefined
  /** Everything this try relies on that was made for the change. */
  readonly files: Set<string>
  /** Those of them that are removed when this try cannot be built. */
  readonly ownFiles: Set<string>
  readonly targetBytes: number
  #waitingBytes = 0

  constructor(given: Pick<SnapshotDraft, 'table' | 'work' | 'counts' | 'typesOf' | 'signal' | 'ownFiles'>) {
    const { table, work, counts, typesOf, signal, ownFiles } = given
    this.table = table
    this.snapshotId = work.snapshotId
    this.work = work
    this.counts = counts
    this.typesOf = typesOf
    this.signal = signal
    this.files = new Set(ownFiles)
    this.ownFiles = ownFiles
    this.targetBytes = targetManifestBytes(table.metadata)
  }

  /** A manifest of the snapshot before that stays as it is. */
  kept(manifest: ManifestFile): PlannedManifest {
    const entries = async (): Promise<NewManifestEntry[]> => {
      const partition = await this.typesOf(manifest.partitionSpecId)
      const live = await entriesOf(this.table, manifest, { partition })
      return live.map((entry) => ({ ...entry, status: 'existing' }))
    }
    return { manifest, isNew: false, content: undefined, entries }
  }

  /** Encodes entries of one spec and kind as new manifests. */
  async encode(entries: readonly NewManifestEntry[], targetBytes = this.targetBytes): Promise<EncodedManifest[]> {
    const first = entries[0]?.file
    if (first === undefined) return []
    const { table, snapshotId } = this
    const partition = await this.typesOf(first.specId)
    return [
      ...encodeManifests(entries, {
        table,
        snapshotId,
        partition,
        targetBytes,
        newPath: () => this.work.newPath(table.metadata),
      }),
    ]
  }

  /** Entries that were all in manifests before are read again when they are needed, which spares memory. */
  rewritten({ manifest, content }: EncodedManifest): PlannedManifest {
    const { table } = this
    const entries = async (): Promise<NewManifestEntry[]> => {
      const bytes = planned.content ?? (await table.storage.read(manifest.manifestPath))
      // None of them inherits a sequence number: only added ones do.
      const source = { ...manifest, sequenceNumber: table.metadata.formatVersion === 1 ? 0n : 1n }
      const partition = await this.typesOf(manifest.partitionSpecId)
      return readManifest(bytes, source, { deleted: true, partition })
    }
    const planned: PlannedManifest = { manifest, isNew: true, content, entries }
    return planned
  }

  /** Stores a manifest at once when it is large, so that not all of them are in memory together. */
  async storeIfLarge(planned: PlannedManifest): Promise<void> {
    const { manifestLength } = planned.manifest
    this.#waitingBytes += manifestLength
    if (manifestLength * 2 < this.targetBytes && this.#waitingBytes <= maxWaitingBytes) return
    await this.store(planned)
  }

  async store(planned: PlannedManifest): Promise<void> {
    if (!planned.isNew) return
    const { manifestPath, manifestLength } = planned.manifest
    this.files.add(manifestPath)
    if (planned.content === undefined) return
    this.ownFiles.add(manifestPath)
    this.signal?.throwIfAborted()
    await this.table.storage.write(manifestPath, planned.content)
    planned.content = undefined
    this.#waitingBytes -= manifestLength
  }

  /** Forgets manifests whose entries are in a merged one. Those that were stored for this try are removed. */
  async drop(merged: readonly PlannedManifest[]): Promise<void> {
    const needless = merged.map(({ manifest }) => manifest.manifestPath).filter((path) => this.ownFiles.has(path))
    if (needless.length === 0) return
    for (const path of needless) {
      this.files.delete(path)
      this.ownFiles.delete(path)
    }
    for (const [key, { replacedBy = [] }] of this.work.filtered) {
      if (replacedBy.some(({ manifest }) => needless.includes(manifest.manifestPath))) this.work.filtered.delete(key)
    }
    for (const [key, { manifests }] of this.work.added) {
      if (manifests.some(({ manifest }) => needless.includes(manifest.manifestPath))) this.work.added.delete(key)
    }
    await removeFiles(this.table, needless)
  }
}

/** Names what is in a manifest. One from before an upgrade to v3 keeps its path when its rows are given their ids. */
export function contentKey({ manifestPath, firstRowId }: ManifestFile): string {
  return `${manifestPath} ${firstRowId}`
}

function newSnapshotId(): bigint {
  const id = BigInt.asUintN(63, randomBytes(8).readBigUInt64BE())
  return id === 0n ? newSnapshotId() : id
}

export function sameTexts(a: readonly string[], b: readonly string[]): boolean {
  return a.length === b.length && a.every((text, index) => text === b[index])
}
