import { mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import {
  scanRows,
  Staging,
  type Field,
  type Filter,
  type ScannedRow,
  type ScannedTable,
  type ScanOptions,
} from '../../src/index.ts'
import { bed, field } from '../write/bed.ts'
import { optional, Workshop } from './hand-made-table.ts'

const { newTable, rows, duckdb } = bed()
let workshop: Workshop
let folder: string
beforeAll(async () => {
  workshop = await Workshop.open()
  folder = await mkdtemp(join(tmpdir(), 'scan-test-'))
})
afterAll(async () => {
  await workshop.close()
  await rm(folder, { recursive: true })
})

const schema = { fields: [field(1, 'id', { type: 'int' })] }
/** The values of a column of numbers, in order. */
const idsOf = (list: readonly ScannedRow[], name = 'id'): number[] =>
  list.map((row) => row[name] as number).toSorted((a, b) => a - b)

async function scanned(table: ScannedTable, options: ScanOptions = {}): Promise<ScannedRow[]> {
  const found: ScannedRow[] = []
  for await (const batch of scanRows(table, { duckDb: duckdb(), ...options })) found.push(...batch)
  return found
}

/** The same table with files that must be copied before they are read. */
function remote(table: ScannedTable): ScannedTable {
  const storage = Object.create(table.storage) as ScannedTable['storage']
  return { ...table, storage: Object.assign(storage, { localPath: () => undefined }) }
}

describe('a scan of the past', () => {
  it('takes what main was at a time, rollbacks included, under the schema of then', async () => {
    const table = await newTable({ schema })
    const first = await table.append([{ id: 1 }])
    const second = await table.append([{ id: 2 }])
    await table.rollbackTo(first?.snapshotId ?? 0n)
    await table.updateSchema([{ change: 'rename', column: 'id', to: 'key' }])
    const third = await table.append([{ key: 3 }])
    const log = [first, second, first, third].map((snapshot, index) => ({
      snapshotId: snapshot?.snapshotId ?? 0n,
      timestampMs: 1000 + index * 10,
    }))
    const { metadata, storage } = table.loaded
    const past = { storage, metadata: { ...metadata, snapshotLog: log } }
    expect(await scanned(past, { asOfMs: 1000 })).toEqual([{ id: 1 }])
    expect(idsOf(await scanned(past, { asOfMs: 1019 }))).toEqual([1, 2])
    expect(await scanned(past, { asOfMs: 1020 })).toEqual([{ id: 1 }])
    expect(idsOf(await scanned(past, { asOfMs: Number.MAX_SAFE_INTEGER }), 'key')).toEqual([1, 3])
    await expect(scanned(past, { asOfMs: 999 })).rejects.toMatchObject({ code: 'scan_invalid' })
    await expect(scanned(past, { asOfMs: 1000, ref: 'main' })).rejects.toThrow(
      /takes one of snapshotId, ref and asOfMs/,
    )
    const expired = { storage, metadata: { ...past.metadata, snapshots: third === undefined ? [] : [third] } }
    await expect(scanned(expired, { asOfMs: 1010 })).rejects.toThrow(/has no snapshot/)
  })

  it('reads a branch under the present schema and a tag under its own, and refuses what is neither', async () => {
    const table = await newTable({ schema })
    await table.append([{ id: 1 }])
    await table.createTag('before')
    await table.createBranch('side')
    await table.append([{ id: 2 }], { branch: 'side' })
    await table.updateSchema([{ change: 'rename', column: 'id', to: 'key' }])
    expect(await rows(table, { ref: 'before' })).toEqual([{ id: 1 }])
    expect(idsOf(await rows(table, { ref: 'side' }), 'key')).toEqual([1, 2])
    expect(await rows(table, { ref: 'main' })).toEqual([{ key: 1 }])
    expect(await rows(table, { schemaId: 0 })).toEqual([{ id: 1 }])
    await expect(rows(table, { ref: 'nowhere' })).rejects.toThrow(/has no branch or tag "nowhere"/)
    await expect(rows(table, { snapshotId: 1n })).rejects.toThrow(/has no snapshot 1/)
  })
})

describe('a scan that finds nothing', () => {
  it('ends without a row: of a new table, by a filter, when all rows or all files are gone', async () => {
    const table = await newTable({ schema })
    expect(await rows(table)).toEqual([])
    await table.append([{ id: 1 }, { id: 2 }])
    expect(await rows(table, { filter: { op: '>', column: 'id', value: 2 } })).toEqual([])
    await table.deleteEqual(['id'], [{ id: 1 }, { id: 2 }])
    expect(await rows(table)).toEqual([])
    await table.deleteFiles(() => true)
    expect(await rows(table)).toEqual([])
  })

  it('of no columns has the rows all the same', async () => {
    const table = await newTable({ schema })
    await table.append([{ id: 1 }, { id: 2 }, { id: 3 }])
    expect(await rows(table, { columns: [], filter: { op: '<', column: 'id', value: 3 } })).toEqual([{}, {}])
  })
})

it('a row may be very wide, and its values long', async () => {
  const names = Array.from({ length: 1000 }, (_, index) => `column ${index}`)
  const table = await newTable({ schema: { fields: names.map((name, at) => field(at + 1, name, { type: 'long' })) } })
  const wide = Object.fromEntries(names.map((name, index) => [name, BigInt(index)]))
  await table.append([wide, wide])
  expect(await rows(table)).toEqual([wide, wide])
  expect(await rows(table, { columns: ['column 999', 'column 0'] })).toEqual([
    { 'column 999': 999n, 'column 0': 0n },
    { 'column 999': 999n, 'column 0': 0n },
  ])
  const long = '🐢 and more, '.repeat(100_000)
  const texts = await newTable({
    schema: { fields: [field(1, 'id', { type: 'int' }), field(2, 's', { type: 'string' })] },
  })
  await texts.append([{ id: 1, s: long }, { id: 2, s: '' }]) // prettier-ignore
  const [found] = await rows(texts, { filter: { op: 'starts with', column: 's', value: long.slice(0, -1) } })
  expect(found?.['id']).toBe(1)
  expect(found?.['s'] === long).toBe(true)
})

describe('metadata columns', () => {
  it('come after the columns that are wanted, with a filter too', async () => {
    const table = await newTable({ schema, formatVersion: 3 })
    await table.append([{ id: 5 }, { id: 6 }])
    const options: ScanOptions = { columns: [], metadataColumns: ['_row_id', '_pos', '_last_updated_sequence_number'] }
    const [row, ...others] = await rows(table, { ...options, filter: { op: '=', column: 'id', value: 6 } })
    expect(Object.entries(row ?? {})).toEqual([
      ['_row_id', 1n],
      ['_pos', 1n],
      ['_last_updated_sequence_number', 1n],
    ])
    expect(others).toEqual([])
  })
})

describe('a scan that is aborted', () => {
  it('throws the reason between two batches, and leaves no file and no folder behind', async () => {
    const table = workshop.table({ schemas: [[optional(1, 'id', 'long')]] })
    const path = await table.data('select range as id from range(20000)', '{id: 1}')
    await table.positions([[path, 1]], { sequence: 2n })
    const own = await mkdtemp(join(folder, 'own-'))
    const controller = new AbortController()
    const options = { signal: controller.signal, duckDb: { temporaryFolder: own }, staging: { folder: own } }
    const iterator = scanRows(remote(await table.build()), options)
    expect((await iterator.next()).done).toBe(false)
    expect((await readdir(own)).length).toBe(2)
    controller.abort(new Error('enough'))
    await expect(iterator.next()).rejects.toThrow('enough')
    expect(await readdir(own)).toEqual([])
    expect((await iterator.next()).done).toBe(true)
    await expect(scanRows(await table.build(), options).next()).rejects.toThrow('enough')
  })

  it('stops inside a query of DuckDB, and frees the shared one for others', async () => {
    const table = workshop.table({ schemas: [[optional(1, 's', 'string')]] })
    await table.data('select md5(range::varchar) as s from range(500_000)', '{s: 1}')
    const built = await table.build()
    // All of the scan is one wait for rows that do not come.
    const nowhere = Array.from({ length: 100 }, (_, at): Filter => ({
      op: 'starts with',
      column: 's',
      value: `${at}x`,
    }))
    const options: ScanOptions = { filter: { op: 'or', filters: nowhere } }
    const started = performance.now()
    expect(await scanned(built, options)).toEqual([])
    const whole = performance.now() - started
    const signal = AbortSignal.timeout(Math.ceil(whole / 10))
    const again = performance.now()
    await expect(scanned(built, { ...options, signal })).rejects.toMatchObject({ name: 'TimeoutError' })
    expect(performance.now() - again).toBeLessThan(whole * 0.8)
    expect(await duckdb().query('select 1 as one')).toEqual([{ one: 1 }])
  })

  it('stops copying a file, and removes what it copied', async () => {
    const table = workshop.table({ schemas: [[optional(1, 'id', 'long')]] })
    await table.data('select range as id from range(20000)', '{id: 1}')
    const built = remote(await table.build())
    const controller = new AbortController()
    let parts = 0
    const storage = Object.assign(Object.create(built.storage) as ScannedTable['storage'], {
      read: (...given: Parameters<ScannedTable['storage']['read']>) => {
        if (given[1] !== undefined) parts += 1
        if (parts === 2) controller.abort()
        return built.storage.read(...given)
      },
    })
    const staging = await Staging.open({ folder, partBytes: 1000, parallelParts: 1 })
    const options = { staging, signal: controller.signal }
    await expect(scanned({ ...built, storage }, options)).rejects.toMatchObject({ name: 'AbortError' })
    expect(parts).toBe(2)
    expect([await readdir(staging.folder), staging.usedBytes]).toEqual([[], 0])
    await staging.close()
  })
})

it('a scan holds one file at a time, so that room for the largest is enough', async () => {
  const fields: Field[] = [optional(1, 'id', 'int')]
  const table = workshop.table({ schemas: [fields] })
  const path = await table.data('select range::integer as id from range(10)', '{id: 1}')
  await table.positions([[path, 1]], { sequence: 2n, file: { referencedDataFile: path } })
  await table.positions([[path, 2]], { sequence: 2n })
  await table.equality('select 3::integer as id', '{id: 1}', [1], { sequence: 2n })
  const built = remote(await table.build())
  const sizes: number[] = []
  for await (const { location, size } of built.storage.list(join(path, '..'))) {
    if (location.endsWith('.parquet')) sizes.push(size)
  }
  const staging = await Staging.open({ folder, maxBytes: Math.max(...sizes) })
  expect(idsOf(await scanned(built, { staging }))).toEqual([0, 4, 5, 6, 7, 8, 9])
  expect(staging.usedBytes).toBe(0)
  await staging.close()
})
