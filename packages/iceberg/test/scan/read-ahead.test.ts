import { mkdtemp, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { planFiles, scanRows, type ByteRange, type ScannedTable } from '../../src/index.ts'
import { CopiedStorage, optional, Workshop, type HandMadeTable } from './hand-made-table.ts'

let workshop: Workshop
beforeAll(async () => {
  workshop = await Workshop.open()
})
afterAll(async () => {
  await workshop.close()
})

const files = 6

/** A table of files of three rows, and the size of the largest file, of deletes too. */
async function tableOf(add?: (table: HandMadeTable, path: string, n: number) => Promise<unknown>) {
  const table = workshop.table({ schemas: [[optional(1, 'id', 'int')]], formatVersion: 3 })
  for (let n = 0; n < files; n += 1) {
    const path = await table.data(`select (${n} * 10 + range)::int as id from range(3)`, '{id: 1}', { sequence: 1n })
    await add?.(table, path, n)
  }
  const { metadata } = await table.build()
  const copied: ScannedTable = { metadata, storage: new CopiedStorage() }
  let largest = 0
  for await (const batch of planFiles(copied)) {
    for (const { file, deletes } of batch) {
      const together = [file, ...deletes.positions.map((each) => each.file)]
      largest = Math.max(largest, ...together.map(({ fileSizeInBytes }) => fileSizeInBytes))
    }
  }
  return { table: copied, largest }
}

async function idsOf(table: ScannedTable, maxBytes: number): Promise<number[]> {
  const ids: number[] = []
  const options = { duckDb: workshop.duckDb, staging: { maxBytes } }
  for await (const rows of scanRows(table, options)) ids.push(...rows.map((row) => Number(row['id'])))
  return ids
}

test('the vectors of several files are read at the same time', async () => {
  const { table, largest } = await tableOf((made, path) => made.vector(path, [1], { sequence: 2n }))
  let [underWay, most] = [0, 0]
  let threeAreUnderWay = (): void => {}
  const three = new Promise<void>((resolve) => {
    threeAreUnderWay = resolve
  })
  class Counting extends CopiedStorage {
    override async read(location: string, range?: ByteRange): Promise<Uint8Array> {
      if (!location.endsWith('.puffin')) return await super.read(location, range)
      most = Math.max(most, (underWay += 1))
      if (underWay === 3) threeAreUnderWay()
      await three
      underWay -= 1
      return await super.read(location, range)
    }
  }
  const ids = await idsOf({ ...table, storage: new Counting() }, largest * files)
  expect(ids).toEqual([0, 2, 10, 12, 20, 22, 30, 32, 40, 42, 50, 52])
  expect(most).toBeGreaterThanOrEqual(3)
})

test('a scan ends where the staging folder holds one file at a time, with and without deletes', async () => {
  const { table, largest } = await tableOf(async (made, path, n) => {
    if (n % 3 === 2) await made.positions([[path, 0]], { sequence: 2n, file: { referencedDataFile: path } })
  })
  expect(await idsOf(table, largest)).toHaveLength(files * 3 - 2)
})

test('a reader that stops early waits for nothing, and leaves no copy behind', async () => {
  const { table, largest } = await tableOf()
  const folder = await mkdtemp(join(workshop.folder, 'stopped-'))
  for await (const rows of scanRows(table, { duckDb: workshop.duckDb, staging: { folder, maxBytes: largest } })) {
    expect(rows).toHaveLength(3)
    break
  }
  expect(await readdir(folder)).toEqual([])
})

test('a file that cannot be read ends the scan with its own error', async () => {
  const { table, largest } = await tableOf()
  class Failing extends CopiedStorage {
    override async read(location: string, range?: ByteRange): Promise<Uint8Array> {
      if (location.endsWith('1.parquet')) throw new Error('connection reset')
      return await super.read(location, range)
    }
  }
  await expect(idsOf({ ...table, storage: new Failing() }, largest)).rejects.toThrow('connection reset')
})
