import type { ContentFile } from '../manifests/content-file.ts'
import type { Snapshot, SnapshotOperation } from '../metadata/snapshot.ts'
import { partitionKey } from '../manifests/partition-key.ts'

interface Counts {
  dataFiles: number
  deleteFiles: number
  equalityDeleteFiles: number
  positionDeleteFiles: number
  deletionVectors: number
  records: number
  bytes: number
  positionDeletes: number
  equalityDeletes: number
}

const noCounts = (): Counts => ({
  dataFiles: 0,
  deleteFiles: 0,
  equalityDeleteFiles: 0,
  positionDeleteFiles: 0,
  deletionVectors: 0,
  records: 0,
  bytes: 0,
  positionDeletes: 0,
  equalityDeletes: 0,
})

/** Counts what a commit adds and removes, for the summary of its snapshot. */
export class SummaryCounts {
  readonly #added = noCounts()
  readonly #removed = noCounts()
  readonly #partitions = new Set<string>()

  add(file: ContentFile): void {
    this.#count(this.#added, file)
  }

  remove(file: ContentFile): void {
    this.#count(this.#removed, file)
  }

  /** What was added: whether the commit is an append, a delete or an overwrite follows from it. */
  get operation(): SnapshotOperation {
    const { dataFiles, deleteFiles } = this.#added
    const removesData = this.#removed.dataFiles > 0
    if (dataFiles > 0 && deleteFiles === 0 && !removesData) return 'append'
    return dataFiles === 0 ? 'delete' : 'overwrite'
  }

  #count(counts: Counts, file: ContentFile): void {
    // Of a Puffin file only the part that this vector takes.
    counts.bytes += file.contentSizeInBytes ?? file.fileSizeInBytes
    this.#partitions.add(partitionKey(file.specId, file.partition))
    if (file.content === 'data') {
      counts.dataFiles += 1
      counts.records += file.recordCount
      return
    }
    counts.deleteFiles += 1
    if (file.content === 'equality-deletes') {
      counts.equalityDeleteFiles += 1
      counts.equalityDeletes += file.recordCount
      return
    }
    if (file.contentOffset === undefined) counts.positionDeleteFiles += 1
    else counts.deletionVectors += 1
    counts.positionDeletes += file.recordCount
  }

  /** The summary, with totals that go on from those of the snapshot before. */
  finish(
    operation: SnapshotOperation,
    parent: Snapshot | undefined,
    extra: Readonly<Record<string, string>>,
  ): Record<string, string> {
    const added = this.#added
    const removed = this.#removed
    const changes: Record<string, number> = {
      'added-data-files': added.dataFiles,
      'deleted-data-files': removed.dataFiles,
      'added-equality-delete-files': added.equalityDeleteFiles,
      'removed-equality-delete-files': removed.equalityDeleteFiles,
      'added-position-delete-files': added.positionDeleteFiles,
      'removed-position-delete-files': removed.positionDeleteFiles,
      'added-dvs': added.deletionVectors,
      'removed-dvs': removed.deletionVectors,
      'added-delete-files': added.deleteFiles,
      'removed-delete-files': removed.deleteFiles,
      'added-records': added.records,
      'deleted-records': removed.records,
      'added-files-size': added.bytes,
      'removed-files-size': removed.bytes,
      'added-position-deletes': added.positionDeletes,
      'removed-position-deletes': removed.positionDeletes,
      'added-equality-deletes': added.equalityDeletes,
      'removed-equality-deletes': removed.equalityDeletes,
    }
    const summary: Record<string, string> = { ...extra, operation }
    for (const [key, count] of Object.entries(changes)) if (count > 0) summary[key] = String(count)
    summary['changed-partition-count'] = String(this.#partitions.size)
    const total = (key: string, more: number, less: number): void => {
      const previous = parent === undefined ? '0' : parent.summary?.[key]
      if (previous === undefined || !/^\d+$/.test(previous)) return
      const now = Number(previous) + more - less
      if (now >= 0) summary[key] = String(now)
    }
    total('total-records', added.records, removed.records)
    total('total-files-size', added.bytes, removed.bytes)
    total('total-data-files', added.dataFiles, removed.dataFiles)
    total('total-delete-files', added.deleteFiles, removed.deleteFiles)
    total('total-position-deletes', added.positionDeletes, removed.positionDeletes)
    total('total-equality-deletes', added.equalityDeletes, removed.equalityDeletes)
    return summary
  }
}
