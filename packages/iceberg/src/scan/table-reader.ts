import type { DuckDBConnection } from '@duckdb/node-api'
import { IcebergError } from '../errors.ts'
import type { ContentFile } from '../manifests/content-file.ts'
import { parseNameMapping, type MappedField } from '../schema/name-mapping.ts'
import type { Field } from '../schema/type.ts'
import { propertyOf, tableProperties } from '../properties.ts'
import { DuckDb, execute, sqlName, type DuckDbOptions } from '../parquet/duckdb.ts'
import { readFooter, type ParquetFooter } from '../parquet/footer.ts'
import { withFieldIds, type ParquetColumn } from '../parquet/parquet-column.ts'
import { parquetTable, parquetTables } from '../parquet/parquet-table.ts'
import type { PositionSet } from '../puffin/position-set.ts'
import { forEachLimited } from '../storage/each.ts'
import { LocalStorage } from '../storage/local-storage.ts'
import { Staging, type Staged, type StagingOptions } from '../storage/staging.ts'
import { DeleteTables, type LoadedDeletes } from './delete-tables.ts'
import { fieldPath, fieldPathSql, type FieldPath } from './field-path.ts'
import { filteredFields, type BoundFilter } from './filter.ts'
import { filterSql } from './filter-sql.ts'
import { createGroupTable, groupFiles, identityValues, type FileGroup } from './file-group.ts'
import { groupLineageSql, lineageSql, type MetadataColumn } from './metadata-columns.ts'
import type { PlanContext, ScanFile } from './plan.ts'
import type { ScannedTable } from '../snapshot/manifests-of.ts'
import { columnSql, type FileColumns } from './projection.ts'
import { nameById, type FieldName } from './sql-value.ts'

/** What is wanted of each file. */
export interface Selection {
  /** Columns of the schema that is read, in the order they are to come. */
  readonly fields: readonly Field[]
  /** They come after the columns. */
  readonly metadataColumns: readonly MetadataColumn[]
  readonly filter?: BoundFilter | undefined
  /** What columns, and fields of structs, are called in SQL. Default: `f` and the field id. */
  readonly nameOf?: FieldName
}

/** What `select` needs of a file and would otherwise wait for. */
export interface PreparedFile {
  readonly data?: { readonly opened: OpenFile; readonly staged: Staged }
  readonly vector?: PositionSet
}

/** The live rows of a file as SQL, good until it is released. */
export interface SelectedFile {
  readonly sql: string
  release(): Promise<void>
}

/** The live rows of files that are read as one. */
export interface SelectedGroup extends SelectedFile {
  readonly files: readonly ScanFile[]
}

export interface ReaderOptions {
  /** A DuckDB to share. Default: one of its own, with these options, closed with the reader. */
  readonly duckDb?: DuckDb | DuckDbOptions
  /** Where remote files are copied to. Default: a folder of its own, removed with the reader. */
  readonly staging?: Staging | StagingOptions
  readonly signal?: AbortSignal
}

/** A local copy, or the file itself, with its columns. */
export interface OpenFile {
  readonly path: string
  readonly columns: readonly ParquetColumn[]
  /** How the values of all columns are stored. Equal columns may be stored as different types of integers. */
  readonly stored: string
}

/**
 * Makes SQL of the files of one table: their live rows, as its schema has them. Close it.
 * Its connection serves one stream of rows at a time: whatever else is run on it ends the stream.
 */
export class TableReader {
  readonly connection: DuckDBConnection
  readonly #table: ScannedTable
  readonly #context: PlanContext
  readonly #mapping: readonly MappedField[] | undefined
  readonly #staging: Staging
  readonly #deletes: DeleteTables
  readonly #signal: AbortSignal | undefined
  readonly #closing: readonly (() => void | Promise<void>)[]
  /** Prepared and not selected yet. */
  readonly #prepared = new Set<Staged>()
  readonly #ahead = new AbortController()
  readonly #isStagingShared: boolean
  #groups = 0

  private constructor(
    parts: {
      table: ScannedTable
      context: PlanContext
      staging: Staging
      isStagingShared: boolean
      connection: DuckDBConnection
    },
    signal: AbortSignal | undefined,
    closing: readonly (() => void | Promise<void>)[],
  ) {
    this.connection = parts.connection
    this.#table = parts.table
    this.#context = parts.context
    this.#staging = parts.staging
    this.#isStagingShared = parts.isStagingShared
    this.#signal = signal
    this.#closing = closing
    const mapping = propertyOf(parts.table.metadata, tableProperties.nameMapping)
    this.#mapping = mapping === undefined ? undefined : parseNameMapping(mapping)
    const schemas = parts.table.metadata.schemas.toSorted((a, b) => b.schemaId - a.schemaId)
    this.#deletes = new DeleteTables({
      connection: parts.connection,
      storage: parts.table.storage,
      keyField: (id) => fieldPath(schemas, id),
      open: (file) => this.open(file),
      signal,
    })
  }

  static async open(table: ScannedTable, context: PlanContext, options: ReaderOptions = {}): Promise<TableReader> {
    const closing: (() => void | Promise<void>)[] = []
    try {
      const duckDb = options.duckDb instanceof DuckDb ? options.duckDb : await DuckDb.open(options.duckDb)
      if (duckDb !== options.duckDb) closing.unshift(() => duckDb.close())
      const staging = options.staging instanceof Staging ? options.staging : await Staging.open(options.staging)
      const isStagingShared = staging === options.staging
      if (!isStagingShared) closing.unshift(() => staging.close())
      const connection = await duckDb.connect()
      const interrupt = (): void => duckDb.interrupt(connection)
      options.signal?.addEventListener('abort', interrupt)
      closing.unshift(() => {
        options.signal?.removeEventListener('abort', interrupt)
        duckDb.disconnect(connection)
      })
      return new TableReader({ table, context, staging, isStagingShared, connection }, options.signal, closing)
    } catch (error) {
      for (const close of closing) await close()
      throw error
    }
  }

  /** Ends the connection, with every table that was made on it. */
  async close(): Promise<void> {
    this.stopPreparing()
    for (const staged of this.#prepared) await staged.release()
    for (const close of this.#closing) await close()
  }

  /** Brings a Parquet file here, and reads its footer. */
  async open(file: ContentFile, signal = this.#signal): Promise<{ opened: OpenFile; staged: Staged }> {
    const { opened, staged } = await this.#openAll([file], signal)
    return { opened: opened[0] as OpenFile, staged }
  }

  /** All of them are admitted to the staging folder together. */
  async #openAll(
    files: readonly ContentFile[],
    signal = this.#signal,
  ): Promise<{ opened: readonly OpenFile[]; staged: Staged }> {
    for (const file of files) assertParquet(file)
    const wanted = files.map((file) => ({ location: file.filePath, size: file.fileSizeInBytes }))
    const staged = await this.#staging.stage(this.#table.storage, wanted, signal)
    try {
      const opened: OpenFile[] = []
      await forEachLimited(files, parallelFooters, async ({ filePath }, index) => {
        signal?.throwIfAborted()
        const path = staged.paths[index] as string
        const local = new LocalStorage()
        const size = await local.size(path)
        const footer = await readFooter({ location: filePath, size, read: (range) => local.read(path, range) })
        assertCodecs(footer, filePath)
        const columns = withFieldIds(footer.columns, this.#mapping, filePath)
        opened[index] = { path, columns, stored: storedTypes(footer) }
      })
      return { opened, staged }
    } catch (error) {
      await staged.release()
      throw error
    }
  }

  /**
   * Brings the data and the vector of a file here, for `select`. No SQL is run, so the rows of another file may stream
   * meanwhile. Files of deletes are not brought: who selects a file with some must have no later file prepared, since
   * these hold the room that the deletes may need. For the same reason a shared folder is given no data ahead.
   */
  async prepare({ file, deletes }: ScanFile): Promise<PreparedFile> {
    const signal = this.#signal === undefined ? this.#ahead.signal : AbortSignal.any([this.#signal, this.#ahead.signal])
    const [data, vector] = await Promise.allSettled([
      this.#isStagingShared ? undefined : this.open(file, signal),
      deletes.vector === undefined ? undefined : this.#deletes.readVector(deletes.vector),
    ])
    if (data.status === 'rejected') throw this.#stopped(data.reason)
    if (data.value !== undefined) this.#prepared.add(data.value.staged)
    if (vector.status === 'rejected') throw this.#stopped(vector.reason)
    return {
      ...(data.value !== undefined && { data: data.value }),
      ...(vector.value !== undefined && { vector: vector.value }),
    }
  }

  /** Ends what is being prepared: it may wait for room that will not be free before the reader is closed. */
  stopPreparing(): void {
    this.#ahead.abort()
  }

  #stopped(reason: unknown): Error {
    this.stopPreparing()
    return reason as Error
  }

  /** The live rows of a data file. */
  async select(scanned: ScanFile, selection: Selection, prepared: PreparedFile = {}): Promise<SelectedFile> {
    const deletes = await this.#deletes.joins(scanned, prepared.vector)
    const releases = [() => deletes.release()]
    try {
      const { opened, staged } = prepared.data ?? (await this.open(scanned.file))
      this.#prepared.delete(staged)
      releases.push(() => staged.release())
      const columns: FileColumns = {
        location: scanned.file.filePath,
        columns: opened.columns,
        identityValues: identityValues(scanned.file, this.#context),
      }
      const from = parquetTable(opened.path, opened.columns.length)
      const lineage = (name: MetadataColumn): string => lineageSql(name, scanned, opened.columns)
      const sql = this.#sql({ selection, from, columns, deletes, lineage })
      return { sql, release: () => releaseAll(releases) }
    } catch (error) {
      await releaseAll(releases)
      throw error
    }
  }

  /**
   * The live rows of many data files, those of equal columns read as one. All of them are on this machine at the same
   * time: divide what is larger than the staging folder may become. The deletes are loaded first, and their files are
   * gone again by then. A group may be released before the others; release all before more are selected.
   */
  async selectGroups(files: readonly ScanFile[], selection: Selection): Promise<SelectedGroup[]> {
    if (files.length === 0) return []
    const loaded = await this.#deletes.load(files)
    const releases = [once(() => loaded.release())]
    const selected: SelectedGroup[] = []
    try {
      const { opened, staged } = await this.#openAll(files.map(({ file }) => file))
      releases.push(() => staged.release())
      const groups = groupFiles(files, opened, this.#context)
      let held = groups.length
      const releaseOne = async (): Promise<void> => {
        held -= 1
        if (held === 0) await releaseAll(releases)
      }
      for (const group of groups) selected.push(await this.#selectGroup(group, loaded, selection, releaseOne))
      return selected
    } catch (error) {
      for (const group of selected) await group.release()
      await releaseAll(releases)
      throw error
    }
  }

  async #selectGroup(
    group: FileGroup,
    loaded: LoadedDeletes,
    selection: Selection,
    releaseFiles: () => Promise<void>,
  ): Promise<SelectedGroup> {
    const { connection } = this
    const facts = `group_${(this.#groups += 1)}`
    await createGroupTable(connection, facts, group)
    const drop = (): Promise<void> => execute(connection, `drop table ${facts}`)
    try {
      const deletes = await this.#deletes.groupJoins(loaded, group.files, `select place from ${facts}`)
      const columns: FileColumns = {
        location: group.files[0]?.file.filePath ?? '',
        columns: group.columns,
        identityValues: group.identityValues,
      }
      const from = `${parquetTables(group.paths, group.columns.length)} join ${facts} g on g.file = t.file_index`
      const lineage = (name: MetadataColumn): string => groupLineageSql(name, group.columns)
      const more = ['g.place as "deleted.file"', 'g.seq as "deleted.seq"']
      const sql = this.#sql({ selection, from, columns, deletes, lineage, more })
      return { files: group.files, sql, release: once(() => releaseAll([drop, releaseFiles])) }
    } catch (error) {
      await drop()
      throw error
    }
  }

  #sql(file: {
    selection: Selection
    from: string
    columns: FileColumns
    deletes: { keys: readonly FieldPath[]; joins: readonly string[] }
    lineage: (name: MetadataColumn) => string
    more?: readonly string[]
  }): string {
    const { selection, columns, deletes } = file
    const { filter, nameOf = nameById } = selection
    const names = selection.fields.map((field) => sqlName(nameOf(field)))
    const inner = selection.fields.map((field, index) => `${columnSql(field, columns, nameOf)} as ${names[index]}`)
    for (const name of selection.metadataColumns) {
      names.push(sqlName(name))
      inner.push(`${file.lineage(name)} as ${sqlName(name)}`)
    }
    inner.push('file_row_number as "deleted.pos"', ...(file.more ?? []))
    for (const key of deletes.keys) inner.push(`${fieldPathSql(key, columns)} as "deleted.${key.id}"`)
    for (const id of filter === undefined ? [] : filteredFields(filter)) {
      const path = fieldPath([this.#context.schema], id)
      if (path !== undefined) inner.push(`${fieldPathSql(path, columns)} as "wanted.${id}"`)
    }
    const wanted = names.length === 0 ? ['"deleted.pos"'] : names
    const rows = `(select ${inner.join(', ')} from ${file.from}) d`
    const where = filter === undefined ? '' : ` where ${filterSql(filter, (id) => `d."wanted.${id}"`)}`
    return `select ${wanted.map((name) => `d.${name}`).join(', ')} from ${[rows, ...deletes.joins].join(' ')}${where}`
  }
}

/** Footers that are read at the same time. */
const parallelFooters = 8

function assertParquet(file: ContentFile): void {
  if (file.fileFormat === 'parquet') return
  throw new IcebergError(
    'scan_unsupported',
    `${file.filePath} is ${file.fileFormat}; only Parquet files are read. Rewrite it as Parquet with another engine.`,
    { details: { location: file.filePath, format: file.fileFormat } },
  )
}

function storedTypes({ metadata }: ParquetFooter): string {
  return JSON.stringify(
    metadata.schema.map((each) => [each.type, each.type_length, each.converted_type, each.logical_type]),
  )
}

// Both are of the time before Parquet said how they are framed.
const unreadableCodecs = new Set(['LZ4', 'LZO'])

function assertCodecs({ metadata }: ParquetFooter, location: string): void {
  const codecs = metadata.row_groups.flatMap(({ columns }) => columns.map((column) => column.meta_data?.codec ?? ''))
  const refused = codecs.find((codec) => unreadableCodecs.has(codec))
  if (refused === undefined) return
  throw new IcebergError(
    'scan_unsupported',
    `${location} is compressed with ${refused}, which DuckDB does not read. Rewrite it with zstd, snappy, gzip, brotli or lz4_raw.`,
    { details: { location, codec: refused } },
  )
}

async function releaseAll(releases: readonly (() => Promise<void>)[]): Promise<void> {
  for (const release of releases) await release()
}

function once(work: () => Promise<void>): () => Promise<void> {
  let done: Promise<void> | undefined
  return () => (done ??= work())
}
