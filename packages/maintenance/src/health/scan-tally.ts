import { partitionKey, type RewriteDataFilesPlan, type ScanFile } from '@fencepost/iceberg'
import type { ScanShape } from './scan-cost.ts'

interface DeleteFile {
  readonly records: number
  readonly isEquality: boolean
  /** Data files it applies to, and those of them that a rewrite would leave. */
  applied: number
  left: number
}

/** Everything that a rewrite decides about one data file. */
interface CountedFile {
  readonly path: string
  readonly bytes: number
  readonly rows: number
  readonly vectorRows: number | undefined
  readonly deletes: readonly string[]
}

/**
 * Counts what a scan reads, and what it would read after a rewrite of data files. How many rows of a file are deleted is
 * known of vectors; the rows of other deletes are spread evenly over the files they apply to.
 */
export class ScanTally {
  readonly #target: number
  readonly #planned: ReadonlySet<string>
  readonly #files: CountedFile[]
  readonly #partitions: Map<string, { files: number; bytes: number }>
  readonly #records: Map<string, { records: number; isEquality: boolean }>

  constructor(targetBytes: number, plan: RewriteDataFilesPlan, from?: ScanTally) {
    this.#target = targetBytes
    this.#planned = new Set(plan.groups.flatMap((group) => group.files.map(({ path }) => path)))
    this.#files = from === undefined ? [] : from.#files
    this.#partitions = from === undefined ? new Map<string, { files: number; bytes: number }>() : from.#partitions
    this.#records = from === undefined ? new Map<string, { records: number; isEquality: boolean }>() : from.#records
  }

  /** The same files, for another plan. */
  withPlan(plan: RewriteDataFilesPlan): ScanTally {
    return new ScanTally(this.#target, plan, this)
  }

  add(scanned: readonly ScanFile[]): void {
    for (const { file, deletes } of scanned) {
      const key = partitionKey(file.specId, file.partition)
      const partition = this.#partitions.get(key) ?? { files: 0, bytes: 0 }
      this.#partitions.set(key, {
        files: partition.files + 1,
        bytes: partition.bytes + file.fileSizeInBytes,
      })
      const others = [...deletes.positions, ...deletes.equality]
      for (const each of others) {
        const { filePath, recordCount: records, content } = each.file
        this.#records.set(filePath, { records, isEquality: content === 'equality-deletes' })
      }
      this.#files.push({
        path: file.filePath,
        bytes: file.fileSizeInBytes,
        rows: file.recordCount,
        vectorRows: deletes.vector?.file.recordCount,
        deletes: others.map((each) => each.file.filePath),
      })
    }
  }

  /** The least files that could hold the rows, partition by partition. */
  get idealFiles(): number {
    let ideal = 0
    for (const { files, bytes } of this.#partitions.values()) {
      ideal += Math.min(files, Math.max(1, Math.round(bytes / this.#target)))
    }
    return ideal
  }

  shape(manifests: number): ScanShape {
    return { manifests, ...this.#shapeOf(this.#files), dataFiles: this.#files.length }
  }

  shapeAfter(plan: RewriteDataFilesPlan, manifests: number): ScanShape {
    const left = this.#shapeOf(this.#files.filter(({ path }) => !this.#planned.has(path)))
    const { liveBytes } = this.#shapeOf(this.#files)
    return { manifests, ...left, liveBytes, dataFiles: this.#files.length - plan.files + plan.expectedFiles }
  }

  #shapeOf(files: readonly CountedFile[]): Omit<ScanShape, 'manifests' | 'dataFiles'> {
    const deletes = this.#appliedTo(files)
    let [bytes, deletedBytes, vectors] = [0, 0, 0]
    for (const file of files) {
      const others = file.deletes.reduce((sum, path) => {
        const { records, applied } = deletes.get(path) ?? { records: 0, applied: 1 }
        return sum + records / applied
      }, 0)
      const deleted = Math.min(file.rows, (file.vectorRows ?? 0) + others)
      bytes += file.bytes
      deletedBytes += file.rows === 0 ? 0 : (file.bytes * deleted) / file.rows
      if (file.vectorRows !== undefined) vectors += 1
    }
    const here = [...deletes.values()].filter(({ left }) => left > 0)
    return {
      liveBytes: bytes - deletedBytes,
      deletedBytes,
      positionDeleteFiles: here.filter(({ isEquality }) => !isEquality).length,
      deletionVectors: vectors,
      equalityDeletes: here.reduce((sum, { isEquality, left }) => sum + (isEquality ? left : 0), 0),
    }
  }

  #appliedTo(files: readonly CountedFile[]): Map<string, DeleteFile> {
    const deletes = new Map<string, DeleteFile>()
    const count = (counted: readonly CountedFile[], what: 'applied' | 'left'): void => {
      for (const path of counted.flatMap((file) => file.deletes)) {
        const known = deletes.get(path) ?? {
          records: 0,
          isEquality: false,
          ...this.#records.get(path),
          applied: 0,
          left: 0,
        }
        known[what] += 1
        deletes.set(path, known)
      }
    }
    count(this.#files, 'applied')
    count(files, 'left')
    return deletes
  }
}
