import fc from 'fast-check'
import { expect, test } from 'vitest'
import { parseDeletionVector, serializeDeletionVector, serializePositions } from './deletion-vector.ts'
import { PositionSet } from './position-set.ts'
import { readPuffinBlob, readPuffinFooter, writePuffin } from './puffin.ts'
import { writeDeletionVectors } from './write-deletion-vectors.ts'

test('a vector has the bytes that the format gives', () => {
  // 1, 3, 5, 7, 9 as one list container: length, magic, one bitmap with key 0, cookie, one container, …, checksum.
  const expected =
    '0000002a' +
    'd1d33964' +
    '0100000000000000' +
    '00000000' +
    '3a300000' +
    '01000000' +
    '0000' +
    '0400' +
    '10000000' +
    '01000300050007000900'
  const blob = serializeDeletionVector(new PositionSet([9, 7, 5, 3, 1, 1]))
  expect(blob.subarray(0, -4).toString('hex')).toBe(expected)
  expect([...parseDeletionVector(blob)]).toEqual([1, 3, 5, 7, 9])
})

test('rows in a row become runs', () => {
  const positions = new PositionSet(Array.from({ length: 60_000 }, (_, i) => i + 30_000))
  expect(serializePositions(positions).length).toBeLessThan(60)
  expect([...parseDeletionVector(serializeDeletionVector(positions))]).toEqual([...positions])
})

const position = fc.oneof(
  fc.integer({ min: 0, max: 200 }),
  fc.integer({ min: 65_000, max: 66_000 }),
  fc.integer({ min: 0, max: 2 ** 31 }),
  fc.integer({ min: 0, max: 2 ** 47 - 1 }),
)
const run = fc.tuple(
  fc.integer({ min: 0, max: 300_000 }),
  fc.integer({ min: 1, max: 20_000 }),
  fc.integer({ min: 1, max: 3 }),
)

test('any set of positions comes back, whatever its containers', () => {
  fc.assert(
    fc.property(fc.array(position, { maxLength: 300 }), fc.array(run, { maxLength: 3 }), (some, runs) => {
      const rows = runs.flatMap(([start, length, step]) => Array.from({ length }, (_, i) => start + i * step))
      const model = new Set([...some, ...rows])
      const set = new PositionSet([...some, ...rows])
      const back = parseDeletionVector(serializeDeletionVector(set))
      expect(set.size).toBe(model.size)
      expect(back.size).toBe(model.size)
      expect([...back]).toEqual([...model].toSorted((a, b) => a - b))
      for (const value of some) expect(back.has(value)).toBe(true)
      expect(back.has(2 ** 46 + 12_345)).toBe(model.has(2 ** 46 + 12_345))
    }),
    { numRuns: 40 },
  )
})

test('a vector that was read can be added to', () => {
  const set = parseDeletionVector(serializeDeletionVector(new PositionSet([5, 1])))
  set.addAll([3, 100_000, 5])
  expect([...set]).toEqual([1, 3, 5, 100_000])
  expect(() => set.add(-1)).toThrow('-1 is not the position of a row')
})

test('one wrong bit anywhere is noticed', () => {
  const blob = serializeDeletionVector(new PositionSet([1, 2, 70_000]))
  for (let byte = 0; byte < blob.length; byte += 1) {
    const damaged = Buffer.from(blob)
    damaged[byte] = (damaged[byte] ?? 0) ^ 4
    expect(() => parseDeletionVector(damaged)).toThrow(expect.objectContaining({ code: 'puffin_invalid' }))
  }
  expect(() => parseDeletionVector(blob.subarray(0, 12))).toThrow('it has only 12 bytes')
})

test('a Puffin file gives back its blobs by the footer', () => {
  const blob = { type: 'some', fields: [1], snapshotId: 2n ** 62n, sequenceNumber: 1n }
  const written = writePuffin(
    [
      { ...blob, content: Buffer.from('abc') },
      { ...blob, type: 'other', content: Buffer.from('déf'), properties: { a: 'b' } },
    ],
    { 'created-by': 'test' },
  )
  const footer = readPuffinFooter(written.content.subarray(-written.footerLength), 'x.puffin')
  expect(footer).toEqual({ blobs: written.blobs, properties: { 'created-by': 'test' } })
  expect(footer.blobs.map((b) => readPuffinBlob(written.content, b, 'x.puffin').toString())).toEqual(['abc', 'déf'])
  expect(footer.blobs[0]).toMatchObject({ offset: 4, length: 3, snapshotId: 2n ** 62n })
})

test('the vectors of several data files share a file, each at its place', () => {
  const sets = new Map([
    ['s3://b/1.parquet', new PositionSet([1, 2])],
    ['s3://b/2.parquet', new PositionSet([7])],
  ])
  const { content, vectors } = writeDeletionVectors(sets)
  expect(vectors.map((v) => [v.referencedDataFile, v.cardinality])).toEqual([
    ['s3://b/1.parquet', 2],
    ['s3://b/2.parquet', 1],
  ])
  for (const { referencedDataFile, contentOffset, contentSizeInBytes } of vectors) {
    const set = parseDeletionVector(content.subarray(contentOffset, contentOffset + contentSizeInBytes))
    expect([...set]).toEqual([...(sets.get(referencedDataFile) ?? [])])
  }
  expect(readPuffinFooter(content, 'x').blobs[1]).toMatchObject({
    type: 'deletion-vector-v1',
    fields: [2147483645],
    snapshotId: -1n,
    sequenceNumber: -1n,
    properties: { 'referenced-data-file': 's3://b/2.parquet', cardinality: '1' },
  })
})

test.each([
  ['no Puffin file', Buffer.from('PAR1 something else'), 'is not a Puffin file'],
  ['a cut file', writePuffin([]).content.subarray(0, -1), 'is not a Puffin file'],
  ['a cut footer', writePuffin([]).content.subarray(-14), 'has a damaged footer'],
])('%s is refused', (_, bytes, message) => {
  expect(() => readPuffinFooter(bytes, 'x.puffin')).toThrow(message)
})
