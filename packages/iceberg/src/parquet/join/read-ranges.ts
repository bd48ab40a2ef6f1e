import type { ByteRange, Storage } from '../../storage/storage.ts'

/** Ranges that are this near to each other are read at once. */
const maxGap = 64 * 1024
const maxRead = 8 * 1024 * 1024

/** Reads a small range of a file for each item that has one, in few requests. */
export async function readRanges<Item>(
  { storage, location, signal }: { storage: Storage; location: string; signal: AbortSignal | undefined },
  items: readonly Item[],
  rangeOf: (item: Item) => ByteRange | undefined,
): Promise<Map<Item, Uint8Array>> {
  const wanted = items
    .flatMap((item) => {
      const range = rangeOf(item)
      return range === undefined ? [] : [{ item, ...range }]
    })
    .sort((a, b) => a.offset - b.offset)
  const batches: { offset: number; end: number; of: typeof wanted }[] = []
  for (const each of wanted) {
    const end = each.offset + each.length
    const last = batches.at(-1)
    if (last !== undefined && each.offset <= last.end + maxGap && end - last.offset <= maxRead) {
      last.end = Math.max(last.end, end)
      last.of.push(each)
    } else batches.push({ offset: each.offset, end, of: [each] })
  }
  const read = new Map<Item, Uint8Array>()
  for (const { offset, end, of } of batches) {
    const bytes = await storage.read(location, { offset, length: end - offset }, { signal })
    for (const each of of) {
      // A copy: a view would keep all that was read with it.
      read.set(each.item, bytes.slice(each.offset - offset, each.offset - offset + each.length))
    }
  }
  return read
}
