import { randomBytes } from 'node:crypto'
import { expect, test } from 'vitest'
import type { Table } from '../../src/index.ts'
import { headOf, liveIn, manifestsBed } from './manifests-bed.ts'
import { rewrite } from './rewrite-bed.ts'

// Remote files are copied to a folder of bounded size before they are read.

const { newTable, rowsOf } = manifestsBed()

const randomRows = (p: string, count: number) =>
  Array.from({ length: count }, () => ({ id: BigInt(randomBytes(6).readUIntBE(0, 6)), p, q: 0 }))

/** A file of so many random rows for each of these partitions. */
async function randomFiles(partitions: readonly string[], count: number) {
  const made = await newTable({ formatVersion: 2 })
  for (const p of partitions) await made.table.append(randomRows(p, count))
  return made
}

async function fileBytes(table: Table): Promise<number> {
  const sizes = (await liveIn(table, headOf(table))).map(({ file }) => file.fileSizeInBytes)
  return Math.max(...sizes)
}

test('a rewrite that divides files ends within a folder that holds not all of them at once', async () => {
  const { table, catalog } = await randomFiles(['a', 'a', 'a', 'a', 'a'], 3000)
  const bytes = await fileBytes(table)
  const before = await rowsOf(table)
  const options = {
    'rewrite-all': 'true',
    'target-file-size-bytes': String(Math.round(bytes * 1.6)),
    'staging-budget-bytes': String(Math.round(bytes * 2.5)),
  }
  const { result } = await rewrite(catalog, table, { options })
  expect(result).toMatchObject({ rewrittenDataFilesCount: 5, unfinished: [] })
  expect(await rowsOf(table)).toEqual(before)
})

test('files that are mostly deleted are read as far as the folder holds them', async () => {
  const { table, catalog } = await randomFiles(['a', 'a', 'a', 'a', 'a'], 3000)
  const bytes = await fileBytes(table)
  const live = await liveIn(table, headOf(table))
  const positions = Array.from({ length: 2900 }, (_, position) => position)
  await table.deletePositions(new Map(live.map(({ file }) => [file.filePath, positions])))
  const before = await rowsOf(table)
  const options = { 'rewrite-all': 'true', 'staging-budget-bytes': String(Math.round(bytes * 2.5)) }
  const { result } = await rewrite(catalog, table, { options })
  expect(result).toMatchObject({ rewrittenDataFilesCount: 5, addedDataFilesCount: 3, unfinished: [] })
  expect(await rowsOf(table)).toEqual(before)
})

test('a group with a file that the folder does not hold is refused, and the others are rewritten', async () => {
  const { table, catalog } = await randomFiles(['a', 'a', 'b', 'b'], 1500)
  await table.append(randomRows('b', 8000))
  const bytes = await fileBytes(table)
  const before = await rowsOf(table)
  const options = { 'rewrite-all': 'true', 'staging-budget-bytes': String(Math.round(bytes * 0.9)) }
  const { result } = await rewrite(catalog, table, { options })
  expect(result.rewrittenDataFilesCount).toBe(2)
  expect(result.unfinished).toMatchObject([{ files: 3, why: 'refused' }])
  expect(await rowsOf(table)).toEqual(before)
})
