import { describe, expect, test } from 'vitest'
import {
  executeRewritePositionDeletes,
  planRewritePositionDeletes,
  type ContentFile,
  type FormatVersion,
  type RewritePositionDeletesOptions,
  type Table,
} from '../../src/index.ts'
import { Fault, type FaultMode } from '../commit/faults.ts'
import { filesBelow } from '../write/bed.ts'
import { headOf, liveIn, manifestsBed, referredFiles, row, type Live } from './manifests-bed.ts'

const { newTable, catalogOn, rowsOf, duckDb } = manifestsBed()
type Bed = Awaited<ReturnType<typeof newTable>>

const dataIn = async (table: Table): Promise<Live[]> =>
  (await liveIn(table, headOf(table)))
    .filter(({ file }) => file.content === 'data')
    .toSorted((a, b) => (a.file.filePath < b.file.filePath ? -1 : 1))
const deletesIn = async (table: Table): Promise<Live[]> =>
  (await liveIn(table, headOf(table))).filter(({ file }) => file.content === 'position-deletes')

/** Two partitions with three data files of four rows, of which three commits delete rows in v2. */
async function fill({ table }: Bed, granularity: 'file' | 'partition' = 'partition'): Promise<void> {
  for (let n = 0; n < 3; n += 1) {
    const rows = [0, 1, 2, 3].flatMap((id) => [row(n * 10 + id, 'a'), row(100 + n * 10 + id, 'b')])
    await table.append(rows)
  }
  const paths = (await dataIn(table)).map(({ file }) => file.filePath)
  for (const position of [0, 1, 2]) {
    await table.deletePositions(new Map(paths.map((path) => [path, [position]])), { granularity })
  }
}

const few: RewritePositionDeletesOptions = { 'min-input-files': 2 }

async function rewrite({ table, catalog }: Pick<Bed, 'table' | 'catalog'>, options = few) {
  const plan = await planRewritePositionDeletes(table.loaded, { options })
  const result = await executeRewritePositionDeletes(table.loaded, plan, { catalog, duckDb: duckDb() })
  await table.refresh()
  return { plan, result }
}

/** Runs a rewrite, with something done right before its first commit. */
async function meeting({ table, catalog }: Bed, before: () => Promise<unknown>, options = few) {
  const plan = await planRewritePositionDeletes(table.loaded, { options })
  let met = false
  const guard = async (): Promise<void> => {
    if (met) return
    met = true
    await before()
  }
  const result = await executeRewritePositionDeletes(table.loaded, plan, { catalog, guard, duckDb: duckDb() })
  await table.refresh()
  return result
}

async function expectNoLitter(table: Table): Promise<void> {
  const known = await referredFiles(table)
  expect((await filesBelow(table)).filter((path) => !known.has(path))).toEqual([])
}

/** At most one vector for a data file, and each for a live one. */
async function expectSoundVectors(table: Table): Promise<void> {
  const vectors = (await deletesIn(table)).filter(({ file }) => file.fileFormat === 'puffin')
  const named = vectors.map(({ file }) => file.referencedDataFile)
  expect(new Set(named).size).toBe(named.length)
  const live = (await dataIn(table)).map(({ file }) => file.filePath)
  for (const path of named) expect(live).toContain(path)
}

test.each(['file', 'partition'] as const)('v2 deletes become one file for each %s', async (granularity) => {
  const bed = await newTable({ properties: { 'write.delete.granularity': granularity } })
  await fill(bed, granularity === 'file' ? 'partition' : 'file')
  const { table } = bed
  const [rows, head, before] = [await rowsOf(table), headOf(table), await deletesIn(table)]
  const { plan, result } = await rewrite(bed)
  expect(JSON.parse(JSON.stringify(plan))).toEqual(plan)
  expect(plan.groups.map(({ partition, files }) => [partition, files.length])).toEqual(
    expect.arrayContaining(['a', 'b'].map((p) => [`p=${p}/q=0`, before.length / 2])),
  )
  const added = granularity === 'file' ? 6 : 2
  expect(result).toMatchObject({
    rewrittenDeleteFilesCount: before.length,
    addedDeleteFilesCount: added,
    rewrittenBytesCount: before.reduce((sum, { file }) => sum + file.fileSizeInBytes, 0),
    snapshotIds: [String(headOf(table).snapshotId)],
    unfinished: [],
  })
  const after = await deletesIn(table)
  expect(after).toHaveLength(added)
  // The number of the last of them, though the commit has a higher one.
  expect(after.map(({ sequenceNumber }) => sequenceNumber)).toEqual(after.map(() => head.sequenceNumber))
  expect(after.every(({ file }) => (file.referencedDataFile !== undefined) === (granularity === 'file'))).toBe(true)
  expect(await rowsOf(table)).toEqual(rows)
  expect(await rowsOf(table, head.snapshotId)).toEqual(rows)
  expect(headOf(table).summary).toMatchObject({
    operation: 'replace',
    'added-position-deletes': '18',
    'removed-position-deletes': '18',
    'total-position-deletes': '18',
  })
  expect((await planRewritePositionDeletes(table.loaded, { options: few })).groups).toEqual([])
  expect(JSON.stringify(plan.groups)).toContain('enough-files')
  await expectNoLitter(table)
})

test('v2 deletes become vectors after an upgrade, one for each data file, with those that are there', async () => {
  const bed = await newTable({})
  await fill(bed)
  const { table } = bed
  await table.upgradeFormatVersion(3)
  const [first = expect.fail()] = await dataIn(table)
  await table.deletePositions(new Map([[first.file.filePath, [3]]]))
  const rows = await rowsOf(table)
  expect(rows).toHaveLength(5)
  const { result } = await rewrite(bed)
  expect(result).toMatchObject({ rewrittenDeleteFilesCount: 7, addedDeleteFilesCount: 6, unfinished: [] })
  const after = await deletesIn(table)
  expect(after.map(({ file }) => file.fileFormat)).toEqual(after.map(() => 'puffin'))
  expect(after.map(({ file }) => file.recordCount).toSorted((a, b) => a - b)).toEqual([3, 3, 3, 3, 3, 4])
  await expectSoundVectors(table)
  expect((await rowsOf(table)).map((text) => text.split(' ')[0])).toEqual(rows.map((text) => text.split(' ')[0]))
  expect((await planRewritePositionDeletes(table.loaded, { options: few })).groups).toEqual([])
  await expectNoLitter(table)
})

test('a vector holds all deletes of its data file, also those that came after the plan', async () => {
  const bed = await newTable({})
  await fill(bed)
  const { table, catalog } = bed
  const loaded = { ...table.loaded, metadata: { ...table.metadata, formatVersion: 3 as const } }
  const plan = await planRewritePositionDeletes(loaded, { options: few })
  const paths = (await dataIn(table)).map(({ file }) => file.filePath)
  await table.deletePositions(new Map(paths.map((path) => [path, [3]])), { granularity: 'partition' })
  await table.upgradeFormatVersion(3)
  expect(await rowsOf(table)).toEqual([])
  await executeRewritePositionDeletes(table.loaded, plan, { catalog, duckDb: duckDb() })
  await table.refresh()
  expect(await rowsOf(table)).toEqual([])
  await expectSoundVectors(table)
})

test('deletes that have nothing left to delete vanish', async () => {
  const bed = await newTable({})
  await fill(bed)
  const { table } = bed
  const gone = (await dataIn(table)).filter(({ file }) => file.partition[0] === 'a')
  const [kept = expect.fail()] = gone
  await table.deleteFiles(gone.slice(1).map(({ file }) => file.filePath))
  const rows = await rowsOf(table)
  const { result } = await rewrite(bed)
  expect(result.unfinished).toEqual([])
  const after = (await deletesIn(table)).filter(({ file }) => file.partition[0] === 'a')
  expect(after.map(({ file }) => [file.recordCount, file.referencedDataFile])).toEqual([[3, kept.file.filePath]])
  expect(await rowsOf(table)).toEqual(rows)
  await table.deleteFiles([kept.file.filePath])
  expect((await deletesIn(table)).filter(({ file }) => file.partition[0] === 'a')).toEqual([])
})

test('a delete does not reach a file of the same path that came later', async () => {
  const bed = await newTable({})
  await fill(bed)
  const { table } = bed
  const [first = expect.fail()] = await dataIn(table)
  await table.deleteFiles([first.file.filePath])
  await table.appendFiles([withoutLineage(first.file)])
  // Of the same partition, so that the new file of deletes has a number that would reach the file.
  const beside = (await dataIn(table)).find(
    ({ file }) => file.filePath !== first.file.filePath && file.partition[0] === first.file.partition[0],
  )
  await table.deletePositions(new Map([[beside?.file.filePath ?? '', [3]]]), { granularity: 'partition' })
  const rows = await rowsOf(table)
  await rewrite(bed)
  expect(await rowsOf(table)).toEqual(rows)
  expect(rows).toHaveLength(8)
})

const withoutLineage = (file: ContentFile): ContentFile => ({ ...file, firstRowId: undefined })

describe.each([2, 3] as FormatVersion[])('beside other writers of a v%i table', (formatVersion) => {
  const prepared = async (): Promise<Bed> => {
    const bed = await newTable({ formatVersion: 2 })
    await fill(bed)
    if (formatVersion === 3) await bed.table.upgradeFormatVersion(3)
    return bed
  }
  const idsOf = async (table: Table): Promise<number[]> =>
    (await rowsOf(table)).map((text) => Number(text.split(' ')[0])).toSorted((a, b) => a - b)

  test('rows that are added meanwhile are kept', async () => {
    const bed = await prepared()
    const ids = await idsOf(bed.table)
    const other = await bed.other()
    const result = await meeting(bed, () => other.append([row(900, 'a')]))
    expect(result.unfinished).toEqual([])
    expect(await idsOf(bed.table)).toEqual([...ids, 900])
    expect((await planRewritePositionDeletes(bed.table.loaded, { options: few })).groups).toEqual([])
    await expectSoundVectors(bed.table)
    await expectNoLitter(bed.table)
  })

  test('rows that are deleted meanwhile stay deleted', async () => {
    const bed = await prepared()
    const { table } = bed
    const [first = expect.fail()] = await dataIn(table)
    const other = await bed.other()
    const result = await meeting(bed, () => other.deletePositions(new Map([[first.file.filePath, [3]]])))
    expect(result.unfinished).toEqual([])
    expect(await idsOf(table)).toHaveLength(5)
    await expectSoundVectors(table)
    await expectNoLitter(table)
  })

  test('data files that are removed meanwhile leave no vector behind', async () => {
    const bed = await prepared()
    const { table } = bed
    const [first = expect.fail()] = await dataIn(table)
    const ids = await idsOf(table)
    const other = await bed.other()
    const result = await meeting(bed, () => other.deleteFiles([first.file.filePath]))
    expect(result.unfinished).toEqual([])
    expect(await idsOf(table)).toHaveLength(ids.length - 1)
    await expectSoundVectors(table)
  })

  test('deletes that another rewrite has replaced are not replaced twice', async () => {
    const bed = await prepared()
    const { table, catalog } = bed
    const ids = await idsOf(table)
    const other = await bed.other()
    const result = await meeting(bed, () => rewrite({ table: other, catalog }))
    expect(result).toMatchObject({ rewrittenDeleteFilesCount: 0, snapshotIds: [], unfinished: [] })
    expect(await idsOf(table)).toEqual(ids)
    await expectSoundVectors(table)
    await expectNoLitter(table)
  })

  test('nothing is committed onto another line of history', async () => {
    const bed = await prepared()
    const { table } = bed
    const gone = (await dataIn(table)).slice(0, 2)
    const start = headOf(table).snapshotId
    await table.deleteFiles(gone.map(({ file }) => file.filePath))
    const other = await bed.other()
    await meeting(bed, () => other.rollbackTo(start))
    expect(await idsOf(table)).toHaveLength(6)
    await expectSoundVectors(table)
  })
})

test('a path that is live but for its scheme makes its group refused', async () => {
  const bed = await newTable({})
  await fill(bed)
  const { table } = bed
  const twins = await dataIn(table)
  // As another engine might have it: the same objects, spelled s3a.
  const [twin = expect.fail()] = twins.filter(({ file }) => file.partition[0] === 'a')
  const spelled = twin.file.filePath.replace('s3:', 's3a:')
  await bed.storage.write(spelled, await bed.storage.read(twin.file.filePath))
  await table.deleteFiles([twin.file.filePath])
  await table.appendFiles([{ ...twin.file, filePath: spelled }])
  const rows = await rowsOf(table)
  const before = (await deletesIn(table)).filter(({ file }) => file.partition[0] === 'a')
  const { result } = await rewrite(bed)
  expect(result.unfinished).toMatchObject([{ partition: 'p=a/q=0', why: 'refused' }])
  expect(result.unfinished[0]?.message).toContain(spelled)
  expect(result).toMatchObject({ rewrittenDeleteFilesCount: 3, addedDeleteFilesCount: 1 })
  const after = (await deletesIn(table)).filter(({ file }) => file.partition[0] === 'a')
  expect(after.map(({ file }) => file.filePath).toSorted()).toEqual(before.map(({ file }) => file.filePath).toSorted())
  expect(await rowsOf(table)).toEqual(rows)
})

test('options decide which files are rewritten, and wrong ones are refused', async () => {
  const bed = await newTable({})
  await fill(bed)
  const { table } = bed
  const groups = async (options: RewritePositionDeletesOptions) =>
    (await planRewritePositionDeletes(table.loaded, { options })).groups.length
  expect(await groups({})).toBe(0)
  expect(await groups({ 'min-input-files': '3' })).toBe(2)
  expect(await groups({ 'rewrite-all': 'true' })).toBe(2)
  expect(await groups({ 'min-input-files': 2, 'max-file-group-input-files': 2 })).toBe(2)
  for (const options of [{ 'max-files-to-rewrite': 1 }, { 'min-input-files': 'x' }, { 'rewrite-all': 'yes' }]) {
    const planning = planRewritePositionDeletes(table.loaded, { options })
    await expect(planning).rejects.toMatchObject({ code: 'value_invalid' })
  }
  const where = { column: 'p', op: '=', value: 'a' } as const
  const plan = await planRewritePositionDeletes(table.loaded, { options: few, where })
  expect(plan.groups.map(({ partition }) => partition)).toEqual(['p=a/q=0'])
  const { result } = await rewrite(bed, { ...few, 'partial-progress.enabled': true })
  expect(result.snapshotIds).toHaveLength(2)
})

test('whatever call fails, the table is whole, and a second run finishes', { timeout: 60_000 }, async () => {
  const bed = await newTable({ properties: { 'write.metadata.previous-versions-max': '10000' } })
  const { table, catalog, storage } = bed
  await table.append([row(0), row(1), row(2)])
  const [{ file } = expect.fail()] = await dataIn(table)
  for (const position of [0, 1]) await table.deletePositions(new Map([[file.filePath, [position]]]))
  await table.upgradeFormatVersion(3)
  const start = headOf(table).snapshotId
  const attempt = async (at: number, mode: FaultMode): Promise<string[]> => {
    await table.setSnapshot(start)
    const fault = new Fault(at, mode)
    const faulty = catalogOn(storage, fault)
    const run = async (): Promise<void> => {
      const loaded = await faulty.loadTable(table.loaded.identifier)
      const plan = await planRewritePositionDeletes(loaded, { options: few })
      await executeRewritePositionDeletes(loaded, plan, { catalog: faulty, duckDb: duckDb() })
    }
    await run().catch(() => {})
    await table.refresh()
    expect(await rowsOf(table)).toHaveLength(1)
    for (const path of await referredFiles(table, [headOf(table)])) expect([...storage.files.keys()]).toContain(path)
    await rewrite({ table, catalog })
    expect(await rowsOf(table)).toHaveLength(1)
    await expectSoundVectors(table)
    expect((await planRewritePositionDeletes(table.loaded, { options: few })).groups).toEqual([])
    return fault.names
  }
  const calls = await attempt(Number.POSITIVE_INFINITY, 'before')
  for (const [index, name] of calls.entries()) {
    await attempt(index + 1, 'before')
    if (name === 'write') await attempt(index + 1, 'after')
    if (index % 4 === 0) await attempt(index + 1, 'down')
  }
})
