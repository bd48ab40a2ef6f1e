import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { expect, test } from 'vitest'
import type { ContentFile, ManifestEntry } from '../manifests/content-file.ts'
import { deletePathId } from './delete.ts'
import { DeleteIndex } from './delete-index.ts'

const base: ContentFile = {
  content: 'position-deletes',
  filePath: 's3://bucket/warehouse/db/t/data/day=2026-01-02/1-deletes.parquet',
  fileFormat: 'parquet',
  specId: 3,
  partition: ['2026-01-02', null],
  recordCount: 5,
  fileSizeInBytes: 2 ** 40,
}
const entry = (file: Partial<ContentFile>, sequenceNumber = 7n): ManifestEntry => ({
  status: 'added',
  snapshotId: 1n,
  sequenceNumber,
  fileSequenceNumber: sequenceNumber,
  file: { ...base, ...file },
})
const data = (filePath: string): ContentFile => ({ ...base, content: 'data', filePath })
const bounds = (text: Uint8Array | string) => new Map([[deletePathId, Buffer.from(text)]])

test('every kind of delete comes back as it was added', () => {
  const index = new DeleteIndex()
  const path = 's3://bucket/warehouse/db/t/data/ä/1.parquet'
  const kinds: Partial<ContentFile>[] = [
    { filePath: 'named.parquet', referencedDataFile: path },
    { filePath: 'bounds.parquet', lowerBounds: bounds(path), upperBounds: bounds(path) },
    // A bound may be cut inside a character.
    { filePath: 'partition', lowerBounds: bounds('s3://'), upperBounds: bounds(Uint8Array.of(0xff, 0xc3)) },
    { filePath: 'unbounded' },
  ]
  for (const kind of kinds) index.add(entry(kind), false)
  const equality = { content: 'equality-deletes', filePath: 'e', equalityIds: [2, 2147483540] } as const
  index.add(entry({ ...equality, fileFormat: 'orc' }, 8n), false)
  index.add(entry({ ...equality, filePath: 'everywhere' }, 9n), true)
  const found = index.of(data(path), 7n)
  expect(found.positions).toMatchObject(kinds.map((file) => ({ sequenceNumber: 7n, file: { ...base, ...file } })))
  expect(found.equality).toMatchObject([
    { sequenceNumber: 9n, file: { ...base, ...equality, filePath: 'everywhere' } },
    { sequenceNumber: 8n, file: { ...base, ...equality, fileFormat: 'orc' } },
  ])
  const vector = { fileFormat: 'puffin', referencedDataFile: path, contentOffset: 4, contentSizeInBytes: 2 ** 33 }
  index.add(entry(vector, 2n ** 60n), false)
  expect(index.of(data(path), 8n).vector).toMatchObject({ sequenceNumber: 2n ** 60n, file: { ...base, ...vector } })
  expect(index.of(data(`${path}x`), 8n)).toEqual({ positions: [], equality: found.equality.slice(0, 1) })
})

test('the deletes of each of many files are found', () => {
  const index = new DeleteIndex()
  const path = (n: number): string => `s3://b/${n % 30_000}/${n}.parquet`
  for (let n = 0; n < 60_000; n += 2) index.add(entry({ filePath: `d${n}`, referencedDataFile: path(n) }), false)
  const wrong: number[] = []
  for (let n = 0; n < 60_000; n += 1) {
    const found = index.of(data(path(n)), 0n).positions.map(({ file }) => file.filePath)
    if (found.join() !== (n % 2 === 0 ? `d${n}` : '')) wrong.push(n)
  }
  expect(wrong).toEqual([])
})

test('data files share the objects of their deletes, however many there are', () => {
  const index = new DeleteIndex()
  for (let n = 0; n < 12_000; n += 1) index.add(entry({ content: 'equality-deletes', filePath: `e${n}` }), n % 2 === 0)
  const [first, second] = ['1.parquet', '2.parquet'].map((path) => index.of(data(path), 0n).equality)
  expect(first).toHaveLength(12_000)
  expect(first?.filter((one, n) => one !== second?.[n])).toEqual([])
})

test('a partition may have more position deletes than a call takes arguments', () => {
  const index = new DeleteIndex()
  for (let n = 0; n < 200_000; n += 1) index.add(entry({ filePath: `d${n}` }), false)
  expect(index.of(data('1.parquet'), 0n).positions).toHaveLength(200_000)
})

test('position deletes whose bounds leave a path out do not apply to it', () => {
  const index = new DeleteIndex()
  index.add(entry({ filePath: 'a-b', lowerBounds: bounds('a'), upperBounds: bounds('b') }), false)
  index.add(entry({ filePath: 'from-b', lowerBounds: bounds('b') }), false)
  index.add(entry({ filePath: 'to-b', upperBounds: bounds('b') }), false)
  const found = (path: string): string[] => index.of(data(path), 0n).positions.map(({ file }) => file.filePath)
  expect(['a', 'b', 'c', 'A'].map(found)).toEqual([['a-b', 'to-b'], ['a-b', 'from-b', 'to-b'], ['from-b'], ['to-b']])
})

test('a delete takes less than 200 bytes in the index', () => {
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as () => void
  const used = (): number => {
    collect()
    const { heapUsed, external } = process.memoryUsage()
    return heapUsed + external
  }
  const count = 40_000
  const before = used()
  const index = new DeleteIndex()
  for (let n = 0; n < count; n += 1) {
    const folder = `s3://bucket/warehouse/analytics/web/page_views/data/region=europe-west/year=2026/month=01/day=${n % 28}`
    const name = `00000-0-3f0f8b3e-8f0f-4c5c-9a43-${String(n).padStart(12, '0')}-00001`
    const referencedDataFile = `${folder}/${name}.parquet`
    const lowerBounds = bounds(referencedDataFile)
    index.add(
      entry({
        filePath: `${folder}/${name}-deletes.parquet`,
        referencedDataFile,
        lowerBounds,
        partition: [n % 28, null],
      }),
      false,
    )
  }
  const bytes = (used() - before) / count
  expect(index.of(data('x'), 0n).positions).toEqual([])
  expect(bytes).toBeLessThan(200)
})
