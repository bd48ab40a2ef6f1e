import { IcebergError } from '../errors.ts'
import type { ContentFile, ManifestEntry } from '../manifests/content-file.ts'
import { partitionKey } from '../manifests/partition-key.ts'
import { onlyPath, type AppliedDeletes, type Delete } from './delete.ts'
import { KeptDeletes, type DeletePartition } from './kept-deletes.ts'
import { PathIndex } from './path-index.ts'

// Which deletes apply to a data file, by the rules of the format:
// - a deletion vector: to the one file it names, if its sequence number is not lower than the file's; it stands for
//   every position delete of that file.
// - position deletes: to files of the same spec and partition, or to the one file they name, if their sequence number is
//   not lower than the file's. Deletes of the same commit apply.
// - equality deletes: to files of the same spec and partition, or to every file when their spec is unpartitioned, if
//   their sequence number is higher than the file's. Deletes of the same commit do not apply.

const noDeletes: AppliedDeletes = { positions: [], equality: [] }

/** The deletes of one partition. */
interface Group extends DeletePartition {
  /** The last that was added, at the head of its chain. */
  positions: number | undefined
  equality: number | undefined
}

/** The deletes of a snapshot, to be asked by data file. They come without statistics, but for the bounds of paths. */
export class DeleteIndex {
  readonly #kept = new KeptDeletes()
  readonly #vectors = new PathIndex((number) => this.#kept.onlyPath(number))
  readonly #byPath = new PathIndex((number) => this.#kept.onlyPath(number))
  readonly #groups = new Map<string, Group>()
  #equalityEverywhere: number | undefined
  #inPartitions = 0
  /** Deletes of many data files, as one object for all files that are in use at the same time. */
  readonly #shared = new Map<number, WeakRef<Delete>>()

  /** `isUnpartitioned`: whether the spec of the file divides nothing. */
  add({ file, sequenceNumber }: ManifestEntry, isUnpartitioned: boolean): void {
    const added: Delete = { file, sequenceNumber }
    const group = this.#group(file)
    if (file.content === 'equality-deletes') {
      if (isUnpartitioned) this.#equalityEverywhere = this.#kept.add(added, group, this.#equalityEverywhere)
      else {
        group.equality = this.#kept.add(added, group, group.equality)
        this.#inPartitions += 1
      }
      return
    }
    if (file.fileFormat === 'puffin') return this.#addVector(added, group)
    const path = onlyPath(file)
    if (path !== undefined) this.#byPath.set(path, this.#kept.add(added, group, this.#byPath.get(path)))
    else {
      group.positions = this.#kept.add(added, group, group.positions)
      this.#inPartitions += 1
    }
  }

  #group({ specId, partition }: ContentFile): Group {
    const key = partitionKey(specId, partition)
    const known = this.#groups.get(key)
    if (known !== undefined) return known
    const group: Group = { specId, values: partition, positions: undefined, equality: undefined }
    this.#groups.set(key, group)
    return group
  }

  #addVector(added: Delete, group: Group): void {
    const { filePath, referencedDataFile } = added.file
    if (referencedDataFile === undefined) {
      throw new IcebergError('manifest_invalid', `A deletion vector in ${filePath} does not say whose rows it deletes.`)
    }
    const other = this.#vectors.get(referencedDataFile)
    if (other !== undefined) {
      throw new IcebergError(
        'manifest_invalid',
        `${referencedDataFile} has two deletion vectors, in ${this.#kept.get(other).file.filePath} and ${filePath}; the format allows one.`,
      )
    }
    this.#vectors.set(referencedDataFile, this.#kept.add(added, group))
  }

  /** What deletes rows of a data file with this data sequence number. */
  of(data: ContentFile, sequenceNumber: bigint): AppliedDeletes {
    const group = this.#inPartitions === 0 ? undefined : this.#groups.get(partitionKey(data.specId, data.partition))
    const isLater = (candidate: number): boolean => this.#kept.sequenceNumber(candidate) > sequenceNumber
    const isNotEarlier = (candidate: number): boolean => this.#kept.sequenceNumber(candidate) >= sequenceNumber
    const equality = [...this.#chain(this.#equalityEverywhere, isLater), ...this.#chain(group?.equality, isLater)]
    const vector = this.#vectors.get(data.filePath)
    if (vector !== undefined && isNotEarlier(vector)) {
      return { vector: this.#kept.get(vector), positions: [], equality }
    }
    const ofThisFile = this.#chain(this.#byPath.get(data.filePath), isNotEarlier, (number) => this.#kept.get(number))
    const path = Buffer.from(group?.positions === undefined ? '' : data.filePath)
    const mayApply = (candidate: number): boolean => isNotEarlier(candidate) && this.#kept.mayName(candidate, path)
    const positions = [...ofThisFile, ...this.#chain(group?.positions, mayApply)]
    return positions.length + equality.length === 0 ? noDeletes : { positions, equality }
  }

  /** Those of a chain that apply, in the order they were added. */
  #chain(
    head: number | undefined,
    applies: (candidate: number) => boolean,
    get = (number: number): Delete => this.#getShared(number),
  ): Delete[] {
    if (head === undefined) return []
    const deletes: Delete[] = []
    for (let at: number | undefined = head; at !== undefined; at = this.#kept.next(at)) {
      if (applies(at)) deletes.push(get(at))
    }
    return deletes.reverse()
  }

  #getShared(number: number): Delete {
    const known = this.#shared.get(number)?.deref()
    if (known !== undefined) return known
    const made = this.#kept.get(number)
    this.#shared.set(number, new WeakRef(made))
    return made
  }
}
