/**
 * What `work` makes of each item, in the order of the items, with at most `limit` under way or waiting to be taken.
 * When the reader stops, or one fails, nothing more is begun, and what was begun is waited for.
 */
export async function* mapOrdered<T, R>(
  items: Iterable<T>,
  limit: number,
  work: (item: T) => Promise<R>,
): AsyncGenerator<R> {
  const waiting: Promise<R>[] = []
  try {
    for (const item of items) {
      const started = work(item)
      // Whoever takes it sees the failure; until then it is not "unhandled".
      started.catch(() => {})
      waiting.push(started)
      if (waiting.length >= limit) yield await (waiting.shift() as Promise<R>)
    }
    for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) yield await next
  } finally {
    await Promise.allSettled(waiting)
  }
}
