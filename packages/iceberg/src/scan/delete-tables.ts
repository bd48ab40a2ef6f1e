import type { DuckDBConnection } from '@duckdb/node-api'
import { IcebergError } from '../errors.ts'
import type { ContentFile } from '../manifests/content-file.ts'
import { execute, explained, sqlText } from '../parquet/duckdb.ts'
import { parquetTable } from '../parquet/parquet-table.ts'
import { parseDeletionVector } from '../puffin/deletion-vector.ts'
import type { PositionSet } from '../puffin/position-set.ts'
import { forEachLimited } from '../storage/each.ts'
import type { Staged } from '../storage/staging.ts'
import type { Storage } from '../storage/storage.ts'
import { deletePathId, deletePositionId, onlyPath, type Delete } from '../snapshot/delete.ts'
import { fieldPathSql, type FieldPath } from './field-path.ts'
import type { ScanFile } from './plan.ts'
import { assertReadable } from './projection.ts'
import type { OpenFile } from './table-reader.ts'

interface Sources {
  readonly connection: DuckDBConnection
  readonly storage: Storage
  readonly keyField: (id: number) => FieldPath | undefined
  readonly open: (file: ContentFile) => Promise<{ opened: OpenFile; staged: Staged }>
  readonly signal: AbortSignal | undefined
}

/** Joins that leave out the deleted rows of `d`, which must have "deleted.pos" and "deleted.<id>" for each key. */
export interface DeleteJoins {
  readonly keys: readonly FieldPath[]
  readonly joins: readonly string[]
  release(): Promise<void>
}

/** What deletes rows of many files. Positions are by the place of the file. */
export interface LoadedDeletes {
  readonly positions: string | undefined
  release(): Promise<void>
}

type Release = () => Promise<void>

/** Vectors that are read at the same time. */
const parallelVectors = 8

/**
 * Deletes as tables of DuckDB, where they may be larger than memory. Those for many data files are loaded once and kept
 * while the connection lasts; those for one file are gone with it.
 */
export class DeleteTables {
  readonly #sources: Sources
  readonly #kept = new Map<string, Promise<string>>()
  #made = 0

  constructor(sources: Sources) {
    this.#sources = sources
  }

  /** `vector` is that of the file, when it has been read already. */
  async joins({ file, deletes }: ScanFile, vector?: PositionSet): Promise<DeleteJoins> {
    const releases: Release[] = []
    const release = async (): Promise<void> => {
      for (const each of releases) await each()
    }
    try {
      const joins: string[] = []
      const positions: string[] = []
      if (deletes.vector !== undefined) {
        positions.push(await this.#vector(vector ?? (await this.readVector(deletes.vector)), releases))
      }
      for (const each of deletes.positions) positions.push(await this.#positions(each, file.filePath, releases))
      if (positions.length > 0) joins.push(antiJoin(`(${positions.join(' union all ')})`, 'd."deleted.pos" = e.pos'))
      const keys = new Map<number, FieldPath>()
      for (const group of byKeys(deletes.equality)) joins.push(await this.#equality(group, keys))
      return { keys: [...keys.values()], joins, release }
    } catch (error) {
      await release()
      throw error
    }
  }

  /**
   * Loads what deletes rows of files that are read together. It is done before the first of these files is brought here:
   * whoever holds some files while it waits for room for others could wait for ever.
   */
  async load(files: readonly ScanFile[]): Promise<LoadedDeletes> {
    for (const group of byKeys(equalityOf(files))) await this.#equality(group, new Map())
    if (!files.some(hasPositions)) return { positions: undefined, release: async () => {} }
    const table = await this.#table('(file bigint, pos bigint)')
    const release = (): Promise<void> => execute(this.#sources.connection, `drop table ${table}`)
    try {
      await this.#fillVectors(table, files)
      await this.#fillPositions(table, files)
      return { positions: table, release }
    } catch (error) {
      await release()
      throw error
    }
  }

  /**
   * Joins for some of the files that were loaded. `d` must also have "deleted.file", the place of its file among all that
   * were loaded, and "deleted.seq", its data sequence number. `places` is SQL of these places. Those with equality deletes
   * must all be of one spec and partition: the deletes of one then apply to all that have a lower sequence number.
   */
  async groupJoins(
    loaded: LoadedDeletes,
    files: readonly ScanFile[],
    places: string,
  ): Promise<Pick<DeleteJoins, 'keys' | 'joins'>> {
    const joins: string[] = []
    if (loaded.positions !== undefined && files.some(hasPositions)) {
      const own = `(from ${loaded.positions} where file in (${places}))`
      joins.push(antiJoin(own, 'd."deleted.file" = e.file and d."deleted.pos" = e.pos'))
    }
    const keys = new Map<number, FieldPath>()
    for (const group of byKeys(equalityOf(files))) joins.push(await this.#equality(group, keys, true))
    return { keys: [...keys.values()], joins }
  }

  async #fillVectors(table: string, files: readonly ScanFile[]): Promise<void> {
    const { connection, signal } = this.#sources
    const vectors = files.flatMap(({ deletes }, number) =>
      deletes.vector === undefined ? [] : [{ number, vector: deletes.vector }],
    )
    if (vectors.length === 0) return
    const appender = await explained(connection.createAppender(table, 'main', 'temp'))
    try {
      await forEachLimited(vectors, parallelVectors, async ({ number, vector }) => {
        signal?.throwIfAborted()
        const file = BigInt(number)
        for (const position of await this.readVector(vector)) {
          appender.appendBigInt(file)
          appender.appendBigInt(BigInt(position))
          appender.endRow()
        }
      })
    } finally {
      appender.closeSync()
    }
  }

  async #fillPositions(table: string, files: readonly ScanFile[]): Promise<void> {
    const byDelete = new Map<string, { file: ContentFile; data: string[] }>()
    for (const [number, { file, deletes }] of files.entries()) {
      for (const each of deletes.positions) {
        const concerned = byDelete.get(each.file.filePath) ?? { file: each.file, data: [] }
        concerned.data.push(`(${number}, ${sqlText(file.filePath)})`)
        byDelete.set(each.file.filePath, concerned)
      }
    }
    for (const { file, data } of byDelete.values()) {
      const insert = (rows: string): Promise<void> =>
        execute(
          this.#sources.connection,
          `insert into ${table} select g.file, e.pos from (${rows}) e join (values ${data.join(', ')}) g(file, path) on e.file_path = g.path`,
        )
      this.#sources.signal?.throwIfAborted()
      if (onlyPath(file) === undefined) {
        const loaded = await this.#once(file.filePath, () => this.#load(file, (opened) => positionRows(opened, file)))
        await insert(`from ${loaded}`)
        continue
      }
      const { opened, staged } = await this.#sources.open(file)
      try {
        await insert(positionRows(opened, file))
      } finally {
        await staged.release()
      }
    }
  }

  async readVector({ file }: Delete): Promise<PositionSet> {
    const { contentOffset: offset, contentSizeInBytes: length, filePath } = file
    if (offset === undefined || length === undefined) {
      throw new IcebergError('manifest_invalid', `A deletion vector in ${filePath} does not say where it is.`)
    }
    const { storage, signal } = this.#sources
    const positions = parseDeletionVector(await storage.read(filePath, { offset, length }, { signal }))
    if (positions.size === file.recordCount) return positions
    throw new IcebergError(
      'puffin_invalid',
      `The deletion vector at ${offset} in ${filePath} deletes ${positions.size} rows, and its manifest says ${file.recordCount}.`,
    )
  }

  async #vector(positions: PositionSet, releases: Release[]): Promise<string> {
    const { connection } = this.#sources
    const table = await this.#table('(pos bigint)')
    releases.push(() => execute(connection, `drop table ${table}`))
    const appender = await explained(connection.createAppender(table, 'main', 'temp'))
    for (const position of positions) {
      appender.appendBigInt(BigInt(position))
      appender.endRow()
    }
    appender.closeSync()
    return `select pos from ${table}`
  }

  async #positions({ file }: Delete, dataPath: string, releases: Release[]): Promise<string> {
    const ofPath = `where file_path = ${sqlText(dataPath)}`
    if (onlyPath(file) === undefined) {
      const table = await this.#once(file.filePath, () => this.#load(file, (opened) => positionRows(opened, file)))
      return `select pos from ${table} ${ofPath}`
    }
    const table = await this.#load(file, (opened) => `select pos from (${positionRows(opened, file)}) ${ofPath}`)
    releases.push(() => execute(this.#sources.connection, `drop table ${table}`))
    return `select pos from ${table}`
  }

  /** The file is not held: whoever holds one file while it waits for room for another could wait for ever. */
  async #load(file: ContentFile, select: (opened: OpenFile) => string): Promise<string> {
    const { opened, staged } = await this.#sources.open(file)
    try {
      return await this.#table(`as ${select(opened)}`)
    } finally {
      await staged.release()
    }
  }

  /** Deletes that look at the same fields are one join. */
  async #equality(group: readonly Delete[], keys: Map<number, FieldPath>, bySequence = false): Promise<string> {
    const fields = (group[0]?.file.equalityIds ?? []).map((id) => this.#key(id, group[0]?.file.filePath ?? ''))
    const selects: string[] = []
    for (const { file, sequenceNumber } of group) {
      const table = await this.#once(file.filePath, () =>
        this.#load(file, (opened) => equalityRows(opened, file, fields)),
      )
      selects.push(bySequence ? `select *, ${sequenceNumber}::bigint as seq from ${table}` : `select * from ${table}`)
    }
    for (const field of fields) keys.set(field.id, field)
    const conditions = fields.flatMap(({ id, type }) => {
      const [data, deleted] = [`d."deleted.${id}"`, `e."${id}"`]
      const isFloat = type.type === 'float' || type.type === 'double'
      const equal = `${data} is not distinct from ${deleted}`
      // NaN equals NaN here as in DuckDB, but the two zeros are two values.
      return isFloat ? [equal, `${isMinusZero(data)} is not distinct from ${isMinusZero(deleted)}`] : [equal]
    })
    if (bySequence) conditions.push('d."deleted.seq" < e.seq')
    return antiJoin(`(${selects.join(' union all ')})`, conditions.join(' and '))
  }

  #key(id: number, location: string): FieldPath {
    const found = this.#sources.keyField(id)
    if (found !== undefined) {
      assertReadable([found.column], `the equality deletes in ${location}`)
      return found
    }
    throw new IcebergError(
      'manifest_invalid',
      `${location} deletes rows by the field ${id}, which no schema of the table has, or has only inside a list or map.`,
      { details: { location, fieldId: id } },
    )
  }

  #once(key: string, load: () => Promise<string>): Promise<string> {
    const known = this.#kept.get(key)
    if (known !== undefined) return known
    const loading = load()
    this.#kept.set(key, loading)
    return loading
  }

  async #table(definition: string): Promise<string> {
    this.#sources.signal?.throwIfAborted()
    const name = `deletes_${(this.#made += 1)}`
    await execute(this.#sources.connection, `create temp table ${name} ${definition}`)
    return name
  }
}

function hasPositions({ deletes }: ScanFile): boolean {
  return deletes.vector !== undefined || deletes.positions.length > 0
}

/** The equality deletes of files, each once. */
function equalityOf(files: readonly ScanFile[]): Delete[] {
  const byPath = new Map(files.flatMap(({ deletes }) => deletes.equality.map((each) => [each.file.filePath, each])))
  return [...byPath.values()]
}

function antiJoin(table: string, condition: string): string {
  return `anti join ${table} e on ${condition}`
}

function isMinusZero(sql: string): string {
  return `(${sql} = 0 and signbit(${sql}))`
}

function positionRows(opened: OpenFile, file: ContentFile): string {
  const column = (fieldId: number, name: string): string => {
    const index = opened.columns.findIndex((candidate) => candidate.fieldId === fieldId)
    if (index === -1) throw lacks(file, name)
    return `p${index} as ${name}`
  }
  const columns = [column(deletePathId, 'file_path'), column(deletePositionId, 'pos')]
  return `select ${columns.join(', ')} from ${parquetTable(opened.path, opened.columns.length)}`
}

function equalityRows(opened: OpenFile, file: ContentFile, fields: readonly FieldPath[]): string {
  const columns = { location: file.filePath, columns: opened.columns, identityValues: new Map() }
  const values = fields.map((field) => {
    if (!opened.columns.some(({ fieldId }) => fieldId === field.column.id)) throw lacks(file, field.column.name)
    return `${fieldPathSql(field, columns)} as "${field.id}"`
  })
  return `select distinct ${values.join(', ')} from ${parquetTable(opened.path, opened.columns.length)}`
}

function lacks(file: ContentFile, column: string): IcebergError {
  return new IcebergError('parquet_invalid', `The delete file ${file.filePath} has no column ${column}.`, {
    details: { location: file.filePath, column },
  })
}

function byKeys(deletes: readonly Delete[]): Delete[][] {
  const groups = new Map<string, Delete[]>()
  for (const each of deletes) {
    const { equalityIds = [], filePath } = each.file
    if (equalityIds.length === 0) {
      throw new IcebergError(
        'manifest_invalid',
        `The equality deletes in ${filePath} do not say which fields they look at.`,
      )
    }
    const key = equalityIds.join(',')
    const group = groups.get(key)
    if (group === undefined) groups.set(key, [each])
    else group.push(each)
  }
  return [...groups.values()]
}
