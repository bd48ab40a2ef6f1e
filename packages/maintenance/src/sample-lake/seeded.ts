/** Random choices that are the same whenever the seed is. */
export class Seeded {
  #state: number

  constructor(seed: string) {
    // FNV-1a: a seed of one letter more is another sequence.
    this.#state = Array.from(seed).reduce(
      (hash, letter) => Math.imul(hash ^ letter.charCodeAt(0), 0x01000193),
      0x811c9dc5,
    )
  }

  /** From 0 up to, and without, 1. */
  share(): number {
    // mulberry32
    this.#state = (this.#state + 0x6d2b79f5) | 0
    let mixed = Math.imul(this.#state ^ (this.#state >>> 15), this.#state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }

  /** A whole number from 0 up to, and without, the limit. */
  below(limit: number): number {
    return Math.floor(this.share() * limit)
  }

  pick<T>(choices: readonly [T, ...T[]]): T {
    return choices[this.below(choices.length)] ?? choices[0]
  }

  /** Small numbers are more likely than large ones, as visits to pages and orders of customers are. */
  skewed(limit: number): number {
    return Math.floor(this.share() ** 3 * limit)
  }
}
