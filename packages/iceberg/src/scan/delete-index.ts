import { IcebergError } from '../errors.ts'
import type { ContentFile, ManifestEntry, PartitionValues } from '../manifests/content-file.ts'
import { viewOf } from '../values/bytes.ts'

// Which deletes apply to a data file, by the rules of the format:
// - a deletion vector: to the one file it names, if its sequence number is not lower than the file's; it stands for
//   every position delete of that file.
// - position deletes: to files of the same spec and partition, or to the one file they name, if their sequence number is
//   not lower than the file's. Deletes of the same commit apply.
// - equality deletes: to files of the same spec and partition, or to every file when their spec is unpartitioned, if
//   their sequence number is higher than the file's. Deletes of the same commit do not apply.

/** The field ids of position delete files. */
export const deletePathId = 2147483546
export const deletePositionId = 2147483545

/** A delete file, or a deletion vector, with its sequence number. */
export interface Delete {
  readonly file: ContentFile
  readonly sequenceNumber: bigint
}

/** Everything that deletes rows of one data file. */
export interface AppliedDeletes {
  readonly vector?: Delete
  /** Files of positions: only the rows with the path of the data file count. */
  readonly positions: readonly Delete[]
  readonly equality: readonly Delete[]
}

const noDeletes: AppliedDeletes = { positions: [], equality: [] }

/** The deletes of a snapshot, to be asked by data file. */
export class DeleteIndex {
  readonly #vectors = new Map<string, Delete>()
  readonly #byPath = new Map<string, Delete[]>()
  readonly #byPartition = new Map<string, Delete[]>()
  readonly #equalityByPartition = new Map<string, Delete[]>()
  readonly #equalityEverywhere: Delete[] = []

  /** `isUnpartitioned`: whether the spec of the file divides nothing. */
  add({ file, sequenceNumber }: ManifestEntry, isUnpartitioned: boolean): void {
    const added: Delete = { file, sequenceNumber }
    if (file.content === 'equality-deletes') {
      if (isUnpartitioned) this.#equalityEverywhere.push(added)
      else push(this.#equalityByPartition, partitionKey(file.specId, file.partition), added)
    } else if (file.fileFormat === 'puffin') this.#addVector(added)
    else {
      const path = onlyPath(file)
      if (path !== undefined) push(this.#byPath, path, added)
      else push(this.#byPartition, partitionKey(file.specId, file.partition), added)
    }
  }

  #addVector(added: Delete): void {
    const { filePath, referencedDataFile } = added.file
    if (referencedDataFile === undefined) {
      throw new IcebergError('manifest_invalid', `A deletion vector in ${filePath} does not say whose rows it deletes.`)
    }
    const other = this.#vectors.get(referencedDataFile)
    if (other !== undefined) {
      throw new IcebergError(
        'manifest_invalid',
        `${referencedDataFile} has two deletion vectors, in ${other.file.filePath} and ${filePath}; the format allows one.`,
      )
    }
    this.#vectors.set(referencedDataFile, added)
  }

  /** What deletes rows of a data file with this data sequence number. */
  of(data: ContentFile, sequenceNumber: bigint): AppliedDeletes {
    const vector = this.#vectors.get(data.filePath)
    const partition = this.#hasPartitions ? partitionKey(data.specId, data.partition) : ''
    const equality = [...this.#equalityEverywhere, ...(this.#equalityByPartition.get(partition) ?? [])].filter(
      (candidate) => candidate.sequenceNumber > sequenceNumber,
    )
    if (vector !== undefined && vector.sequenceNumber >= sequenceNumber) return { vector, positions: [], equality }
    const positions = [
      ...(this.#byPath.get(data.filePath) ?? []),
      ...(this.#byPartition.get(partition) ?? []).filter(({ file }) => mayName(file, data.filePath)),
    ].filter((candidate) => candidate.sequenceNumber >= sequenceNumber)
    return positions.length + equality.length === 0 ? noDeletes : { positions, equality }
  }

  get #hasPartitions(): boolean {
    return this.#byPartition.size + this.#equalityByPartition.size > 0
  }
}

function push(map: Map<string, Delete[]>, key: string, value: Delete): void {
  const found = map.get(key)
  if (found === undefined) map.set(key, [value])
  else found.push(value)
}

/** The one data file that position deletes are for: named, or known by the bounds of the paths being equal. */
export function onlyPath(file: ContentFile): string | undefined {
  if (file.referencedDataFile !== undefined) return file.referencedDataFile
  const lower = file.lowerBounds?.get(deletePathId)
  const upper = file.upperBounds?.get(deletePathId)
  if (lower === undefined || upper === undefined || Buffer.compare(lower, upper) !== 0) return undefined
  return viewOf(lower).toString('utf8')
}

// A lower bound that is cut is still a lower bound, and a cut upper bound was made larger.
function mayName(file: ContentFile, path: string): boolean {
  const lower = file.lowerBounds?.get(deletePathId)
  const upper = file.upperBounds?.get(deletePathId)
  const bytes = Buffer.from(path)
  if (lower !== undefined && Buffer.compare(lower, bytes) > 0) return false
  return upper === undefined || Buffer.compare(upper, bytes) >= 0
}

/** One text for each partition of each spec. Null is a value of its own, NaN equals NaN, and -0.0 is not 0.0. */
export function partitionKey(specId: number, partition: PartitionValues): string {
  const texts = partition.map((value) => {
    if (value === null) return 'null'
    if (value instanceof Uint8Array) return `x${viewOf(value).toString('hex')}`
    if (Object.is(value, -0)) return '-0'
    return typeof value === 'string' ? JSON.stringify(value) : String(value)
  })
  return `${specId}:${texts.join(',')}`
}
