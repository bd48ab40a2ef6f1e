import { IcebergError } from '../errors.ts'
import { type Container, containerAdd, containerHas, containerValues, emptyContainer } from './container.ts'

const maxPosition = 2 ** 47

/** A set of row positions, as a deletion vector holds them. */
export class PositionSet {
  /** Containers by the position without its last 16 bits. */
  readonly #containers: Map<number, Container>

  constructor(positions: Iterable<number> = []) {
    this.#containers = new Map()
    this.addAll(positions)
  }

  /** A set that uses the given containers as its own. */
  static ofContainers(containers: ReadonlyMap<number, Container>): PositionSet {
    const set = new PositionSet()
    for (const [key, container] of containers) set.#containers.set(key, container)
    return set
  }

  get size(): number {
    let size = 0
    for (const container of this.#containers.values()) size += container.size
    return size
  }

  has(position: number): boolean {
    const container = this.#containers.get(Math.floor(position / 65536))
    return container !== undefined && containerHas(container, position % 65536)
  }

  add(position: number): void {
    if (!Number.isInteger(position) || position < 0 || position >= maxPosition) {
      throw new IcebergError('value_invalid', `${position} is not the position of a row`)
    }
    const key = Math.floor(position / 65536)
    const container = this.#containers.get(key) ?? emptyContainer()
    this.#containers.set(key, containerAdd(container, position % 65536))
  }

  addAll(positions: Iterable<number>): void {
    for (const position of positions) this.add(position)
  }

  /** The containers with their keys, ascending. */
  containers(): [key: number, container: Container][] {
    return [...this.#containers].toSorted(([a], [b]) => a - b)
  }

  /** The positions, ascending. */
  *[Symbol.iterator](): Generator<number> {
    for (const [key, container] of this.containers()) {
      for (const value of containerValues(container)) yield key * 65536 + value
    }
  }
}
