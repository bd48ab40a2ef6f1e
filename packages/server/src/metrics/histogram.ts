import type { Labels, Sample } from './text.ts'

/** Counts of seconds in buckets, for each set of labels. */
export class Histogram {
  readonly bounds: readonly number[]
  readonly #series = new Map<string, { labels: Labels; buckets: number[]; sum: number }>()

  constructor(bounds: readonly number[]) {
    this.bounds = bounds
  }

  /** Adds `count` values that sum up to `sum`, all in the bucket of this number, as Postgres's width_bucket() has it. */
  add(labels: Labels, bucket: number, count: number, sum: number): void {
    const key = JSON.stringify(labels)
    const series = this.#series.get(key) ?? { labels, buckets: this.bounds.map(() => 0).concat(0), sum: 0 }
    series.buckets[bucket] = (series.buckets[bucket] ?? 0) + count
    series.sum += sum
    this.#series.set(key, series)
  }

  samples(): Sample[] {
    return [...this.#series.values()].flatMap(({ labels, buckets, sum }) => {
      let below = 0
      const cumulated = [...this.bounds, Number.POSITIVE_INFINITY].map((bound, nth) => {
        below += buckets[nth] ?? 0
        const le = bound === Number.POSITIVE_INFINITY ? '+Inf' : String(bound)
        return { labels: { ...labels, le }, value: below, suffix: '_bucket' }
      })
      return [...cumulated, { labels, value: sum, suffix: '_sum' }, { labels, value: below, suffix: '_count' }]
    })
  }
}
