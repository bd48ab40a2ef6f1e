import { UsageError } from '../failure.ts'

const largestPage = 1000

/** How many a list has at most, over as many pages as it takes. */
export const limitOption = {
  kind: 'text',
  placeholder: 'number',
  description: 'At most so many; all of them with all.',
  default: '20',
} as const

/** The number of --limit; undefined for all. */
export function readLimit(text: string): number | undefined {
  if (text === 'all') return undefined
  const limit = Number(text)
  if (/^\d{1,9}$/.test(text) && limit >= 1) return limit
  throw new UsageError(`--limit is ${JSON.stringify(text)}; give a whole number from 1, or all.`)
}

/** How many to ask for at once. */
export function pageLimit(limit: number | undefined): number {
  return Math.min(limit ?? largestPage, largestPage)
}

/** The first of a list, so many of them; all if that is undefined. */
export async function upTo<Item>(limit: number | undefined, items: AsyncIterable<Item>): Promise<Item[]> {
  const found: Item[] = []
  for await (const item of items) {
    found.push(item)
    if (found.length === limit) break
  }
  return found
}
