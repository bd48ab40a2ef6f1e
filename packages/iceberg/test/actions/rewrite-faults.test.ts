import { describe, expect, test } from 'vitest'
import {
  executeRewriteDataFiles,
  openTable,
  planRewriteDataFiles,
  type Catalog,
  type FormatVersion,
  type Table,
} from '../../src/index.ts'
import { failingCommits, type CommitFault } from '../commit/commit-faults.ts'
import { Fault, type FaultMode } from '../commit/faults.ts'
import { headOf, manifestsBed, referredFiles, row } from './manifests-bed.ts'

// A rewrite that ends at any call, and another after it. It goes back to the same snapshot every time.

const { newTable, catalogOn, rowsOf, duckDb } = manifestsBed()
type Bed = Awaited<ReturnType<typeof newTable>>

const options = { 'min-input-files': 2, 'delete-file-threshold': 1, 'max-concurrent-file-group-rewrites': 1 }

/** Two partitions of small files, with deletes by position and by key. */
async function prepared(formatVersion: FormatVersion): Promise<Bed> {
  const bed = await newTable({ formatVersion, properties: { 'write.metadata.previous-versions-max': '10000' } })
  const { table } = bed
  for (const n of [0, 2]) await table.append([row(n, 'a'), row(n + 1, 'a'), row(n + 10, 'b')])
  const [path = ''] = [...(await referredFiles(table))].filter(
    (file) => file.includes('p=a') && file.endsWith('parquet'),
  )
  await table.deletePositions(new Map([[path, [0]]]))
  await table.deleteEqual(['p', 'q', 'id'], [row(12, 'b')])
  return bed
}

const isLong = process.env['FENCEPOST_HISTORIES'] !== undefined

/** How a call fails: in all ways in a long run, else in one, and calls that change something also after they did. */
function modesOf(index: number, name: string): FaultMode[] {
  if (isLong) return ['before', 'after', 'down']
  const isChange = ['write', 'adopt', 'delete'].includes(name)
  return [index % 2 === 0 ? 'down' : 'before', ...(isChange ? (['after'] as const) : [])]
}

async function rewrite(table: Table, catalog: Catalog): Promise<void> {
  const loaded = await catalog.loadTable(table.loaded.identifier)
  const plan = await planRewriteDataFiles(loaded, { options })
  await executeRewriteDataFiles(loaded, plan, { catalog, pause: async () => {} })
}

async function rowsIn(table: Table): Promise<string[]> {
  await table.refresh()
  return (await rowsOf(table)).map((text) => text.split(' ').slice(0, 3).join(' ')).toSorted()
}

async function expectWhole({ table, storage }: Bed, rows: readonly string[]): Promise<void> {
  expect(await rowsIn(table)).toEqual(rows)
  const missing = [...(await referredFiles(table, [headOf(table)]))].filter((path) => !storage.files.has(path))
  expect(missing).toEqual([])
}

async function expectFinished(bed: Bed, rows: readonly string[]): Promise<void> {
  const { table, catalog } = bed
  await rewrite(table, catalog)
  await expectWhole(bed, rows)
  expect((await planRewriteDataFiles(table.loaded, { options })).groups).toEqual([])
}

describe.each([2, 3] as FormatVersion[])('a rewrite of a v%i table that is interrupted', (formatVersion) => {
  test('at any call is finished by the next', { timeout: 600_000 }, async () => {
    const bed = await prepared(formatVersion)
    const { table, storage } = bed
    const start = headOf(table).snapshotId
    const rows = await rowsIn(table)
    const attempt = async (at: number, mode: FaultMode): Promise<string[]> => {
      await table.setSnapshot(start)
      const fault = new Fault(at, mode)
      await rewrite(table, catalogOn(storage, fault)).catch(() => {})
      await expectWhole(bed, rows)
      await expectFinished(bed, rows)
      return fault.names
    }
    const calls = await attempt(Number.POSITIVE_INFINITY, 'before')
    for (const name of ['read', 'adopt', 'write']) expect(calls).toContain(name)
    for (const [index, name] of calls.entries()) for (const mode of modesOf(index, name)) await attempt(index + 1, mode)
  })

  const faults: CommitFault[] = ['lost', 'late', 'denied', 'repeated']
  test.each(faults)('by a commit that is %s changes no row, and is finished by the next', async (fault) => {
    const bed = await prepared(formatVersion)
    const { table, catalog } = bed
    const rows = await rowsIn(table)
    const other = await openTable(catalog, table.loaded.identifier, { duckDb: duckDb() })
    let commits = 0
    const failing = failingCommits(catalog, [fault])
    const guarded: Catalog = new Proxy(failing, {
      get(target, key) {
        if (key !== 'commit') return Reflect.get(target, key) as unknown
        return async (...given: Parameters<Catalog['commit']>) => {
          const result = await target.commit(...given)
          // Another commit hides the one that the answer was lost of.
          if ((commits += 1) === 1) await other.refresh().then(() => other.append([row(900, 'c')]))
          return result
        }
      },
    })
    await rewrite(table, guarded)
    const after = [...rows, '900 c 0'].toSorted()
    await expectWhole(bed, after)
    await expectFinished(bed, after)
  })
})
