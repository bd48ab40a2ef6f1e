import { Batches } from './batches.ts'

interface Waiting<Found> {
  key: string
  resolve: (found: Found | undefined) => void
  reject: (error: unknown) => void
}

/**
 * Looks things up by their keys, those that are asked for at the same time in one statement. What is asked for while
 * statements are under way goes with the next, so an answer is never older than its question. Those who ask for the
 * same key at the same time share what is found.
 */
export class Lookup<Found> {
  readonly #findAll: (keys: readonly string[]) => Promise<ReadonlyMap<string, Found>>
  readonly #batches: Batches<Waiting<Found>>

  constructor(findAll: (keys: readonly string[]) => Promise<ReadonlyMap<string, Found>>, maxBatch = 100) {
    this.#findAll = findAll
    this.#batches = new Batches((some) => this.#answer(some), maxBatch)
  }

  async find(key: string): Promise<Found | undefined> {
    return new Promise((resolve, reject) => {
      this.#batches.add({ key, resolve, reject })
    })
  }

  async #answer(some: readonly Waiting<Found>[]): Promise<void> {
    try {
      const found = await this.#findAll([...new Set(some.map(({ key }) => key))])
      for (const { key, resolve } of some) resolve(found.get(key))
    } catch (error) {
      for (const { reject } of some) reject(error)
    }
  }
}
