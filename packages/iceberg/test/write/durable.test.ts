import { mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import {
  createTable,
  DuckDb,
  HadoopCatalog,
  IcebergError,
  LocalStorage,
  planFiles,
  writeRelation,
  type CallOptions,
  type Draft,
  type FormatVersion,
  type SnapshotOptions,
  type Table,
} from '../../src/index.ts'
import { field } from './bed.ts'

// Every file that a commit names was handed to the table's storage, which has made it durable, before the catalog is
// asked to commit it. What is not handed over is not to be seen.

let root: string
let duckDb: DuckDb
let tables = 0
beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), 'fencepost-durable-'))
  duckDb = await DuckDb.open({ threads: 1 })
})
afterAll(async () => {
  await duckDb.close()
  await rm(root, { recursive: true })
})

/** Notes what it has made durable; fails from some draft on. */
class WatchedStorage extends LocalStorage {
  readonly durable = new Set<string>()
  failsAfter = Number.POSITIVE_INFINITY

  override async write(...args: Parameters<LocalStorage['write']>): Promise<void> {
    await super.write(...args)
    this.durable.add(args[0])
  }

  override async adopt(drafts: readonly Draft[], options?: CallOptions): Promise<void> {
    await super.adopt(drafts.slice(0, this.failsAfter), options)
    if (drafts.length > this.failsAfter) throw new IcebergError('storage_failed', 'broken by the test')
    for (const { location } of drafts) this.durable.add(location)
  }
}

async function newTable(formatVersion: FormatVersion) {
  const storage = new WatchedStorage()
  const catalog = new HadoopCatalog({ name: 'files', warehouse: `${root}/${(tables += 1)}`, storage })
  await catalog.createNamespace(['db'])
  const fields = [field(1, 'id', { type: 'long' }), field(2, 'part', { type: 'string' })]
  const table = await createTable(
    catalog,
    { namespace: ['db'], name: 't' },
    {
      schema: { fields },
      formatVersion,
      partitionSpec: { fields: [{ fieldId: 1000, sourceId: 2, name: 'part', transform: { name: 'identity' } }] },
    },
    { duckDb },
  )
  return { storage, table }
}

const rows = (ids: readonly number[]) => ids.map((id) => ({ id: BigInt(id), part: `p${id % 3}` }))

async function filesOnDisk(table: Table): Promise<string[]> {
  const { location } = table.metadata
  const names = await readdir(`${location}/data`, { recursive: true, withFileTypes: true }).catch(() => [])
  return names.filter((entry) => entry.isFile()).map((entry) => `${entry.parentPath}/${entry.name}`)
}

async function firstFile(table: Table): Promise<string> {
  for await (const [first] of planFiles(table.loaded)) if (first !== undefined) return first.file.filePath
  return ''
}

const changes: [string, FormatVersion, (table: Table, file: string, options: SnapshotOptions) => Promise<unknown>][] = [
  ['append', 3, (table, _, options) => table.append(rows([10, 11, 12, 13]), options)],
  ['delete by position in v2', 2, (table, file, options) => table.deletePositions(new Map([[file, [0]]]), options)],
  ['delete by position in v3', 3, (table, file, options) => table.deletePositions(new Map([[file, [0]]]), options)],
  ['overwrite', 2, (table, _, options) => table.overwrite(rows([20, 21]), options)],
  [
    'delete by key',
    2,
    (table, _, options) => table.deleteEqual(['id', 'part'], rows([1, 2]), { ...options, append: rows([1]) }),
  ],
  [
    'a select',
    2,
    async (table, _, options) => {
      const partition = ['p0']
      const written = await writeRelation(duckDb, table.loaded, {
        select: `select 30::bigint as id, 'p0' as part`,
        partition,
      })
      return table.appendFiles(written === undefined ? [] : [written], options)
    },
  ],
]

test.each(changes)('%s: every file is durable before the catalog is asked', async (_name, formatVersion, change) => {
  const { storage, table } = await newTable(formatVersion)
  await table.append(rows([1, 2, 3, 4]))
  const before = new Set(await filesOnDisk(table))
  const file = await firstFile(table)
  storage.durable.clear()
  let seen: string[] | undefined
  const guard = async (): Promise<void> => {
    seen = await filesOnDisk(table)
    for (const path of seen) if (!before.has(path)) expect(storage.durable).toContain(path)
  }
  await change(table, file, { guard })
  expect(seen?.length).toBeGreaterThan(before.size)
  expect(await filesOnDisk(table)).toEqual(seen)
})

test.each(changes)('%s: a storage that fails half way is left as it was', async (name, formatVersion, change) => {
  if (name === 'delete by position in v3') return // one file, which is written whole
  const { storage, table } = await newTable(formatVersion)
  await table.append(rows([1, 2, 3, 4]))
  const before = await filesOnDisk(table)
  const file = await firstFile(table)
  for (const failsAfter of [0, 1]) {
    storage.failsAfter = failsAfter
    const outcome = await change(table, file, {}).then(
      () => 'applied',
      (error: { message: string }) => error.message,
    )
    if (outcome === 'applied') expect(failsAfter).toBe(1)
    else {
      expect(outcome).toBe('broken by the test')
      expect(await filesOnDisk(table)).toEqual(before)
    }
  }
})

test('a file is not to be seen under its name while it is written', async () => {
  const { storage, table } = await newTable(2)
  const seen: string[][] = []
  const adopt = storage.adopt.bind(storage)
  storage.adopt = async (drafts, options) => {
    seen.push(await filesOnDisk(table))
    await adopt(drafts, options)
  }
  await table.append(rows([1, 2, 3]))
  expect(seen).toHaveLength(1)
  expect(seen[0]?.map((path) => path.endsWith('.tmp'))).toEqual([true, true, true])
  expect((await filesOnDisk(table)).every((path) => path.endsWith('.parquet'))).toBe(true)
})

test('a select without rows leaves no file, and none is adopted', async () => {
  const { storage, table } = await newTable(2)
  storage.failsAfter = 0
  const select = `select 1::bigint as id, 'p0' as part where false`
  expect(await writeRelation(duckDb, table.loaded, { select, partition: ['p0'] })).toBeUndefined()
  expect(await filesOnDisk(table)).toEqual([])
})

test('what was written is removed when the signal ends it', async () => {
  const { table } = await newTable(2)
  const stop = new AbortController()
  function* aborting() {
    yield* rows([1, 2, 3])
    stop.abort(new Error('not wanted any more'))
  }
  await expect(table.append(aborting(), { signal: stop.signal })).rejects.toThrow('not wanted any more')
  expect(await filesOnDisk(table)).toEqual([])
})
