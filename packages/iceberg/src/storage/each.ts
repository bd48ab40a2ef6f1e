/** Runs `work` over the items, at most `limit` at a time. The first failure stops what has not begun, and is thrown. */
export async function forEachLimited<T>(
  items: Iterable<T>,
  limit: number,
  work: (item: T, index: number) => Promise<void>,
): Promise<void> {
  const entries = Array.from(items).entries()
  let failed = false
  const lane = async (): Promise<void> => {
    for (const [index, item] of entries) {
      if (failed) return
      try {
        await work(item, index)
      } catch (error) {
        failed = true
        throw error
      }
    }
  }
  // Wait for all of them: nothing of this call goes on after it has failed.
  const lanes = await Promise.allSettled(Array.from({ length: limit }, lane))
  for (const ended of lanes) if (ended.status === 'rejected') throw ended.reason as Error
}

/** The parts of `length` bytes, each of at most `partBytes`, from `offset`. */
export function partsOf(offset: number, length: number, partBytes: number): { offset: number; length: number }[] {
  const parts = []
  for (let at = 0; at < length; at += partBytes) {
    parts.push({ offset: offset + at, length: Math.min(partBytes, length - at) })
  }
  return parts
}
