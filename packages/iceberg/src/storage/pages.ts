/**
 * The items of pages, one by one. Listings have millions of them, and a generator costs several turns of the event queue
 * for each; this one promise.
 */
export function eachOfPages<T>(pages: AsyncGenerator<readonly T[], void>): AsyncIterableIterator<T> {
  let page: readonly T[] = []
  let at = 0
  const refilled = async (): Promise<IteratorResult<T, undefined>> => {
    while (at >= page.length) {
      const next = await pages.next()
      if (next.done === true) return { done: true, value: undefined }
      page = next.value
      at = 0
    }
    return { done: false, value: page[at++] as T }
  }
  return {
    // Only one call at a time, as `for await` makes them.
    next: () => (at < page.length ? Promise.resolve({ done: false, value: page[at++] as T }) : refilled()),
    return: async () => {
      page = []
      await pages.return()
      return { done: true, value: undefined }
    },
    [Symbol.asyncIterator]() {
      return this
    },
  }
}
