import { existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { CandidateFiles, marks, type CandidateFile } from './candidate-files.ts'

const folder = mkdtempSync(join(tmpdir(), 'fencepost-candidates-test-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const file = (n: number): CandidateFile => ({
  path: `s3://bucket/ü🐢/${n}-${'x'.repeat(n % 900)}.parquet`,
  kind: n % 2 === 0 ? 'data' : 'manifest',
  bytes: n * 2 ** 33,
  modifiedAtMs: n + 0.5,
})

async function all(candidates: CandidateFiles, mark: 0 | 1 | 2): Promise<CandidateFile[]> {
  const found: CandidateFile[] = []
  for await (const batch of candidates.marked(mark, 700)) found.push(...batch)
  return found
}

test('candidates are read back as they were added, in memory and from disk', async () => {
  const files = Array.from({ length: 6000 }, (_, n) => file(n))
  for (const memoryBytes of [0, 1_100_000, 2 ** 30]) {
    const candidates = await CandidateFiles.open({ memoryBytes, temporaryFolder: folder })
    expect(files.every((one) => candidates.add(one.path, one))).toBe(true)
    expect(candidates.spilledBytes > 0).toBe(memoryBytes < 2 ** 30)
    expect(await all(candidates, marks.none)).toEqual(files)
    for (const [n, one] of files.entries()) if (n % 3 === 0) candidates.mark(one.path, marks.reached)
    expect(await all(candidates, marks.none)).toEqual(files.filter((_, n) => n % 3 !== 0))
    expect(await all(candidates, marks.reached)).toEqual(files.filter((_, n) => n % 3 === 0))
    await candidates.close()
    expect(readdirSync(folder)).toEqual([])
  }
})

test('a key is a candidate once, and the strongest mark stays', async () => {
  const candidates = await CandidateFiles.open({ temporaryFolder: folder })
  expect(candidates.add('k', file(1))).toBe(true)
  expect(candidates.add('k', file(2))).toBe(false)
  expect(candidates.size).toBe(1)
  candidates.mark('k', marks.reached)
  candidates.mark('k', marks.suspect)
  candidates.mark('another', marks.reached)
  expect(candidates.markOf('k')).toBe(marks.reached)
  expect(candidates.markOf('another')).toBeUndefined()
  expect(await all(candidates, marks.none)).toEqual([])
  await candidates.close()
  await candidates.close()
})

test('a path that is longer than everything that is held together is kept whole', async () => {
  const candidates = await CandidateFiles.open({ memoryBytes: 0, temporaryFolder: folder })
  const long = { ...file(1), path: 'ü'.repeat(2_000_000) }
  candidates.add('short', file(2))
  candidates.add('long', long)
  candidates.add('last', file(3))
  expect(await all(candidates, marks.none)).toEqual([file(2), long, file(3)])
  await candidates.close()
  expect(existsSync(folder)).toBe(true)
})
