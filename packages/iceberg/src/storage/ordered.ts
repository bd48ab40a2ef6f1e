/** What items weigh, and how much those may weigh that are under way or waiting to be taken. One may always be. */
interface Weights<T> {
  readonly of: (item: T) => number
  readonly max: number
}

/**
 * What `work` makes of each item, in the order of the items, with at most `limit` under way or waiting to be taken.
 * When the reader stops, or one fails, nothing more is begun, and what was begun is waited for.
 */
export async function* mapOrdered<T, R>(
  items: Iterable<T>,
  limit: number,
  work: (item: T) => Promise<R>,
  weights: Weights<T> = { of: () => 0, max: 0 },
): AsyncGenerator<R> {
  const waiting: { result: Promise<R>; weight: number }[] = []
  let total = 0
  const take = (): Promise<R> => {
    const { result, weight } = waiting.shift() as (typeof waiting)[number]
    total -= weight
    return result
  }
  try {
    for (const item of items) {
      const weight = weights.of(item)
      while (waiting.length > 0 && total + weight > weights.max) yield await take()
      const result = work(item)
      // Whoever takes it sees the failure; until then it is not "unhandled".
      result.catch(() => {})
      waiting.push({ result, weight })
      total += weight
      if (waiting.length >= limit) yield await take()
    }
    while (waiting.length > 0) yield await take()
  } finally {
    await Promise.allSettled(waiting.map(({ result }) => result))
  }
}
