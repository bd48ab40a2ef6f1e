import type { ContentFile } from '../manifests/content-file.ts'

/** A partition and what is in it. */
export interface FragmentedPartition {
  /** As its folders are called: "day=2026-01-02"; empty for an unpartitioned table. */
  readonly partition: string
  readonly specId: number
  readonly files: number
  readonly smallFiles: number
  readonly deleteFiles: number
  readonly bytes: number
}

/** Counts files by partition, in bounded memory: partitions that come after the limit are not told apart. */
export class Fragmentation {
  readonly #limit: number
  readonly #partitions = new Map<string, { -readonly [K in keyof FragmentedPartition]: FragmentedPartition[K] }>()
  #exact = true

  constructor(limit: number) {
    this.#limit = limit
  }

  add(key: string, name: () => string, file: ContentFile, isSmall: boolean): void {
    let counts = this.#partitions.get(key)
    if (counts === undefined) {
      if (this.#partitions.size >= this.#limit) {
        this.#exact = false
        return
      }
      counts = { partition: name(), specId: file.specId, files: 0, smallFiles: 0, deleteFiles: 0, bytes: 0 }
      this.#partitions.set(key, counts)
    }
    if (file.content !== 'data') {
      counts.deleteFiles += 1
      return
    }
    counts.files += 1
    counts.bytes += file.fileSizeInBytes
    if (isSmall) counts.smallFiles += 1
  }

  /** The partitions with the most small files, then the most deletes. */
  most(count: number): { count: number; exact: boolean; mostFragmented: FragmentedPartition[] } {
    const all = [...this.#partitions.values()]
    const mostFragmented = all
      .toSorted((a, b) => b.smallFiles - a.smallFiles || b.deleteFiles - a.deleteFiles || b.files - a.files)
      .slice(0, count)
    return { count: all.length, exact: this.#exact, mostFragmented }
  }
}
