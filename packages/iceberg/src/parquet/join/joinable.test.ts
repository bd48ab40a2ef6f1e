import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { DuckDBConnection } from '@duckdb/node-api'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { DuckDb } from '../duckdb.ts'
import { binary, i32, i64, structField, structList, ThriftStruct } from '../thrift-compact.ts'
import { joinable, type JoinableOptions, type JoinInput } from './joinable.ts'
import { joinFiles } from './join-files.ts'
import { columnChunk, columnMetaData, fileMetaData, rowGroup } from './parquet-fields.ts'
import { readWholeFooter } from './whole-footer.ts'
import { LocalStorage } from '../../storage/local-storage.ts'

let folder: string
let duckdb: DuckDb
let connection: DuckDBConnection
let plain: string

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'fencepost-joinable-'))
  duckdb = await DuckDb.open({ threads: 1 })
  connection = await duckdb.connect()
  plain = await write('select n as id, n::varchar as name from range(3000) r (n)')
})
afterAll(async () => {
  await duckdb.close()
  await rm(folder, { recursive: true, force: true })
})

let made = 0
const fresh = (): string => join(folder, `${(made += 1)}.parquet`)

async function write(select: string, options = ''): Promise<string> {
  const path = fresh()
  await connection.run(`copy (${select}) to '${path}' (format parquet, row_group_size 2048${options})`)
  return path
}

/** The same file with another footer. */
async function withFooter(
  path: string,
  change: (footer: ThriftStruct) => ThriftStruct,
  magic = 'PAR1',
): Promise<string> {
  const bytes = await readFile(path)
  const end = bytes.length - 8
  const start = end - bytes.readUInt32LE(end)
  const footer = change(ThriftStruct.parse(bytes.subarray(start, end))).encode()
  const length = Buffer.alloc(4)
  length.writeUInt32LE(footer.length)
  const changed = fresh()
  await writeFile(changed, Buffer.concat([bytes.subarray(0, start), footer, length, Buffer.from(magic)]))
  return changed
}

function withGroups(footer: ThriftStruct, change: (group: ThriftStruct) => ThriftStruct): ThriftStruct {
  return footer.with(structList(fileMetaData.rowGroups, (footer.structs(fileMetaData.rowGroups) ?? []).map(change)))
}

function withChunks(footer: ThriftStruct, change: (chunk: ThriftStruct) => ThriftStruct): ThriftStruct {
  return withGroups(footer, (group) =>
    group.with(structList(rowGroup.columns, (group.structs(rowGroup.columns) ?? []).map(change))),
  )
}

function withMetaData(footer: ThriftStruct, change: (metaData: ThriftStruct) => ThriftStruct): ThriftStruct {
  return withChunks(footer, (chunk) =>
    chunk.with(structField(columnChunk.metaData, change(chunk.struct(columnChunk.metaData) ?? new ThriftStruct([])))),
  )
}

async function inputOf(path: string, file: Partial<JoinInput['entry']['file']> = {}): Promise<JoinInput> {
  const storage = new LocalStorage()
  const size = await storage.size(path)
  const footer = await readWholeFooter({ location: path, size, read: (range) => storage.read(path, range) })
  const whole = {
    content: 'data',
    filePath: path,
    fileFormat: 'parquet',
    specId: 0,
    partition: [],
    recordCount: footer.rowCount,
    fileSizeInBytes: size,
    ...file,
  } as const
  return { footer, entry: { file: whole, sequenceNumber: 1n } }
}

const anySize: JoinableOptions = { minRowGroupBytes: 0 }

/** What is said of one file beside two plain ones, which are joined in any case. */
async function reasonOf(input: JoinInput, options: JoinableOptions = anySize): Promise<string> {
  const others = [await inputOf(plain), await inputOf(plain)]
  const { sets, refused } = joinable([others[0] ?? input, input, others[1] ?? input], options)
  expect(sets[0]).toContain(others[0])
  if (refused.length === 0) return 'joined'
  expect(refused.map((each) => each.input)).toEqual([input])
  expect(refused[0]?.why).toMatch(/^[A-Z].*\.$/)
  // What is refused is refused by the act itself too.
  const act = joinFiles({
    inputs: [others[0] ?? input, input],
    output: fresh(),
    storage: new LocalStorage(),
    schema: { fields: [] },
    lineage: options.lineage ?? false,
  })
  await expect(act).rejects.toMatchObject({ code: 'parquet_invalid', details: { reason: refused[0]?.reason } })
  return refused[0]?.reason ?? ''
}

const reasonWith = async (change: (footer: ThriftStruct) => ThriftStruct, magic?: string): Promise<string> =>
  await reasonOf(await inputOf(await withFooter(plain, change, magic)))

test('files of one schema and writer are joined, in the order in which they were given', async () => {
  const inputs = [
    await inputOf(plain),
    await inputOf(await write('select n as id, n::varchar as name from range(9) r (n)')),
    await inputOf(plain),
  ]
  expect(joinable(inputs, anySize)).toEqual({ sets: [inputs], refused: [] })
})

describe('a file is refused', () => {
  const one = new ThriftStruct([i32(1, 1)])

  test('that is encrypted, in whole or in part', async () => {
    expect(await reasonWith((footer) => footer.with(structField(fileMetaData.encryptionAlgorithm, one)))).toBe(
      'encrypted',
    )
    expect(
      await reasonWith((footer) =>
        withChunks(footer, (chunk) => chunk.with(structField(columnChunk.cryptoMetadata, one))),
      ),
    ).toBe('encrypted')
    const hidden = (chunk: ThriftStruct): ThriftStruct =>
      chunk.without(columnChunk.metaData).with(binary(columnChunk.encryptedMetadata, Buffer.from('?')))
    expect(await reasonWith((footer) => withChunks(footer, hidden))).toBe('encrypted')
    expect(
      joinable([await inputOf(await withFooter(plain, (footer) => footer, 'PARE'))], anySize).refused[0]?.reason,
    ).toBe('encrypted')
  })

  test('whose columns are in another file', async () => {
    const elsewhere = binary(columnChunk.filePath, Buffer.from('other.parquet'))
    expect(await reasonWith((footer) => withChunks(footer, (chunk) => chunk.with(elsewhere)))).toBe('external_chunks')
  })

  test('whose footer says what this package has never heard of', async () => {
    const unknown = i64(40, 1234)
    expect(await reasonWith((footer) => footer.with(unknown))).toBe('unknown_feature')
    expect(await reasonWith((footer) => withGroups(footer, (group) => group.with(unknown)))).toBe('unknown_feature')
    expect(await reasonWith((footer) => withChunks(footer, (chunk) => chunk.with(unknown)))).toBe('unknown_feature')
    expect(await reasonWith((footer) => withMetaData(footer, (metaData) => metaData.with(unknown)))).toBe(
      'unknown_feature',
    )
  })

  test('whose columns are not where it says', async () => {
    const far = i64(columnMetaData.dataPageOffset, 10_000_000)
    expect(await reasonWith((footer) => withMetaData(footer, (metaData) => metaData.with(far)))).toBe('damaged')
    const outside = i64(columnMetaData.dictionaryPageOffset, 1_000_000)
    expect(await reasonWith((footer) => withMetaData(footer, (metaData) => metaData.with(outside)))).toBe('damaged')
    const fewer = (group: ThriftStruct): ThriftStruct =>
      group.with(structList(rowGroup.columns, (group.structs(rowGroup.columns) ?? []).slice(1)))
    expect(await reasonWith((footer) => withGroups(footer, fewer))).toBe('damaged')
    const turned = (group: ThriftStruct): ThriftStruct =>
      group.with(structList(rowGroup.columns, (group.structs(rowGroup.columns) ?? []).toReversed()))
    expect(await reasonWith((footer) => withGroups(footer, turned))).toBe('damaged')
    expect(await reasonWith((footer) => footer.with(i64(fileMetaData.rowCount, 2999)))).toBe('damaged')
  })

  test('of which the table says another number of rows', async () => {
    expect(await reasonOf(await inputOf(plain, { recordCount: 2999 }))).toBe('damaged')
  })

  test('by a writer that gave wrong sizes', async () => {
    const by = (name: string) => reasonWith((footer) => footer.with(binary(fileMetaData.createdBy, Buffer.from(name))))
    expect(await by('parquet-mr version 1.2.8 (build ff)')).toBe('old_writer')
    expect(await by('parquet-mr version 1.2.9 (build ff)')).toBe('alone')
    expect(await by('parquet-mr version 1.13.1 (build ff)')).toBe('alone')
  })

  test('that is unlike all others in schema, names, or writer', async () => {
    expect(
      await reasonOf(await inputOf(await write('select n as id, n::varchar as renamed from range(9) r (n)'))),
    ).toBe('alone')
    expect(
      await reasonOf(await inputOf(await write('select n::integer as id, n::varchar as name from range(9) r (n)'))),
    ).toBe('alone')
    const ids = ', field_ids {id: 1, name: 2}'
    expect(
      await reasonOf(await inputOf(await write('select n as id, n::varchar as name from range(9) r (n)', ids))),
    ).toBe('alone')
    expect(await reasonWith((footer) => footer.without(fileMetaData.createdBy))).toBe('alone')
    const orders = structList(fileMetaData.columnOrders, [one, one])
    expect(await reasonWith((footer) => footer.with(orders))).toBe('alone')
  })

  test('whose row groups are small', async () => {
    const inputs = [await inputOf(plain), await inputOf(plain)]
    const { refused, sets } = joinable(inputs)
    expect(sets).toEqual([])
    expect(refused.map(({ reason }) => reason)).toEqual(['small_row_groups', 'small_row_groups'])
    const bytes = inputs[0]?.footer.groups.flatMap(({ chunks }) => chunks.map(({ pages }) => pages.length)) ?? []
    const average = bytes.reduce((sum, length) => sum + length, 0) / 2
    expect(joinable(inputs, { minRowGroupBytes: average }).sets).toHaveLength(1)
    expect(joinable(inputs, { minRowGroupBytes: average + 1 }).sets).toHaveLength(0)
  })
})

describe('with row lineage', () => {
  const ids = ', field_ids {_row_id: 2147483540, _last_updated_sequence_number: 2147483539}'
  const held = (
    rowId: string,
    columns = ', 5::bigint as _last_updated_sequence_number',
    named = ids,
  ): Promise<string> =>
    write(`select n as id, n::varchar as name, ${rowId} as _row_id${columns} from range(3000) r (n)`, named)
  const lineage: JoinableOptions = { minRowGroupBytes: 0, lineage: true }
  const refusedOf = async (path: string, firstRowId?: bigint) => {
    const inputs = await Promise.all([1, 2].map(() => inputOf(path, { firstRowId })))
    return joinable(inputs, lineage).refused.map(({ reason }) => reason)
  }

  test('a file that holds it for all rows is joined, and one that holds it for some is not', async () => {
    expect(await refusedOf(await held('n'), 7n)).toEqual([])
    const some = await held('case when n <> 2500 then n end')
    expect(await refusedOf(some, 7n)).toEqual(['lineage_nulls', 'lineage_nulls'])
    expect(joinable([await inputOf(some), await inputOf(some)], anySize).refused).toEqual([])
  })

  test('a file that does not tell how many are null is refused', async () => {
    const path = await withFooter(await held('n'), (footer) =>
      withMetaData(footer, (each) => each.without(columnMetaData.statistics)),
    )
    expect(await refusedOf(path, 7n)).toEqual(['lineage_nulls', 'lineage_nulls'])
  })

  test('a file that holds one of the two columns, or whose rows have no ids in the table, is refused', async () => {
    const half = await held('n', '', ', field_ids {_row_id: 2147483540}')
    expect(await refusedOf(half, 7n)).toEqual(['lineage_unknown', 'lineage_unknown'])
    expect(await refusedOf(await held('n'), undefined)).toEqual(['lineage_unknown', 'lineage_unknown'])
  })

  test('files whose rows have ids are not joined with files whose rows have none', async () => {
    const [known, unknown] = [await inputOf(plain, { firstRowId: 1n }), await inputOf(plain)]
    expect(joinable([known, unknown], lineage).sets).toEqual([])
    expect(joinable([unknown, unknown], lineage).sets).toHaveLength(1)
    expect(joinable([known, unknown], anySize).sets).toHaveLength(1)
  })

  test('a file whose columns have no field ids is given none for its lineage alone', async () => {
    expect(await refusedOf(plain, 7n)).toEqual(['lineage_unknown', 'lineage_unknown'])
    const withIds = await write('select n as id from range(10) r (n)', ', field_ids {id: 1}')
    expect(await refusedOf(withIds, 7n)).toEqual([])
    const named = await write('select n as id, n as _row_id from range(10) r (n)', ', field_ids {id: 1}')
    expect(await refusedOf(named, 7n)).toEqual(['lineage_unknown', 'lineage_unknown'])
  })
})

test('no set has more row groups than a file can number', async () => {
  const narrow = await write('select n as id from range(3000) r (n)')
  const many = await withFooter(narrow, (footer) => {
    const [group] = footer.structs(fileMetaData.rowGroups) ?? []
    const groups = Array.from({ length: 20_000 }, () => group ?? new ThriftStruct([]))
    return footer.with(structList(fileMetaData.rowGroups, groups), i64(fileMetaData.rowCount, 2048 * 20_000))
  })
  const inputs = [await inputOf(many), await inputOf(many), await inputOf(narrow), await inputOf(narrow)]
  const { sets } = joinable(inputs, anySize)
  expect(sets.map((set) => set.map((input) => inputs.indexOf(input)))).toEqual([[1, 2, 3]])
  const act = joinFiles({
    inputs: inputs.slice(0, 2),
    output: fresh(),
    storage: new LocalStorage(),
    schema: { fields: [] },
  })
  await expect(act).rejects.toThrow('40000 row groups are more than a file can number')
})
