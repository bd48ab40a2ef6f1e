import { expect, test } from 'vitest'
import { groupReason, packed } from './candidates.ts'
import type { RewriteSettings } from './options.ts'
import { expectedOutputFiles, splitBytes, writeMaxBytes } from './sizes.ts'
import { bytesOf, take, type Slice } from './slices.ts'

const mib = 1024 ** 2
const sizes = { target: 512 * mib, min: 384 * mib, max: Math.floor(512 * 1.8 * mib) }

test('a file may grow to the middle between the target and what is too large', () => {
  expect(writeMaxBytes(sizes)).toBe(Math.floor(512 * mib + (sizes.max - 512 * mib) * 0.5))
})

// Worked out by hand from the rules of Iceberg's SizeBasedFileRewritePlanner.
test.each([
  ['less than the target', 100 * mib, 1, 512 * mib],
  ['exactly the target', 512 * mib, 1, 512 * mib + 5120],
  ['a rest that is spread', 540 * mib, 1, 540 * mib + 5120],
  ['a rest that is too much to be spread', 600 * mib, 2, 512 * mib],
  ['a rest that is a file of its own', 900 * mib, 2, 512 * mib],
  ['ten files and a little', 5200 * mib, 10, 520 * mib + 5120],
  ['ten files and most of one', 5600 * mib, 11, Math.floor((5600 * mib) / 11) + 5120],
])('%s: how many files, and how large', (_, bytes, files, split) => {
  expect(expectedOutputFiles(bytes, sizes)).toBe(files)
  expect(splitBytes(bytes, sizes)).toBe(Math.max(512 * mib, split))
})

test('a group is closed by the first file that does not fit', () => {
  const files = [4, 4, 3, 9, 1, 1].map((bytes) => ({ bytes }))
  const sizesOf = (maxFiles: number) =>
    packed(files, { maxBytes: 10, maxFiles }).map((group) => group.map(({ bytes }) => bytes))
  expect(sizesOf(100)).toEqual([[4, 4], [3], [9, 1], [1]])
  expect(sizesOf(1)).toEqual([[4], [4], [3], [9], [1], [1]])
})

test.each([
  [1, 100, 'too-small', undefined],
  [4, 10, 'too-small', undefined],
  [5, 10, 'too-small', 'enough-files'],
  [2, 300, 'too-small', 'enough-bytes'],
  [1, 1000, 'too-large', 'too-many-bytes'],
  [1, 10, 'deleted-rows', 'deletes'],
] as const)('%i files of %i MiB, each %s, are a group: %s', (count, size, why, expected) => {
  const settings = { sizes, options: { 'rewrite-all': false, 'min-input-files': 5 } } as unknown as RewriteSettings
  const files = Array.from({ length: count }, () => ({ bytes: size * mib, why }))
  expect(groupReason(files, settings)).toBe(expected)
})

test('rows are cut where a new file is full, and all of them are taken once', () => {
  const file = { recordCount: 1000, fileSizeInBytes: 1000 }
  const scanned = { file, deletes: { positions: [], equality: [] } } as unknown as Slice['scanned']
  let rest: Slice[] = Array.from({ length: 7 }, () => ({ scanned, from: 0, to: 1000 }))
  const taken: number[] = []
  let rows = 0
  while (rest.length > 0) {
    const cut = take(rest, 1500)
    rest = cut.rest
    taken.push(bytesOf(cut.taken))
    rows += cut.taken.reduce((sum, slice) => sum + slice.to - slice.from, 0)
  }
  expect(rows).toBe(7000)
  expect(taken).toEqual([1500, 1500, 1500, 1500, 1000])
})
