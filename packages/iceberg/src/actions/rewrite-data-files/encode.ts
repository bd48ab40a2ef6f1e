import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { tableName, type LoadedTable } from '../../catalogs/catalog.ts'
import { IcebergError } from '../../errors.ts'
import type { ContentFile, PartitionValues } from '../../manifests/content-file.ts'
import { partitionKey } from '../../manifests/partition-key.ts'
import { schemaOf, sortOrderOf } from '../../metadata/table-metadata.ts'
import { metricsModes } from '../../parquet/metrics-modes.ts'
import { writeParquetFile } from '../../parquet/write-file.ts'
import type { DuckDb } from '../../parquet/duckdb.ts'
import { metadataColumns } from '../../scan/metadata-columns.ts'
import type { PlanContext, ScanFile } from '../../scan/plan.ts'
import { TableReader, type SelectedGroup } from '../../scan/table-reader.ts'
import type { Field } from '../../schema/type.ts'
import { NewFiles } from '../../storage/new-files.ts'
import type { Staging } from '../../storage/staging.ts'
import { temporaryFolder } from '../../storage/temporary-folder.ts'
import { removeFiles } from '../../write/remove-files.ts'
import { assertCanWriteRows, writeFile, type FileKind } from '../../write/write-files.ts'
import { assertNoNulls } from '../../write/write-relation.ts'
import type { RewriteSettings } from './options.ts'
import { assertSameRows, tallyOf, type RowTallies } from './proof.ts'
import { expectedOutputFiles, splitBytes } from './sizes.ts'
import { bytesOf, isWhole, sliceBytes, take, wholeSlices, type Slice } from './slices.ts'

/** What groups are read and written with. */
export interface EncodeContext {
  readonly table: LoadedTable
  readonly context: PlanContext
  readonly settings: RewriteSettings
  readonly duckDb: DuckDb
  readonly staging: Staging
  readonly tallies: RowTallies
  readonly signal?: AbortSignal | undefined
  /** Called when a file is written: with its size, and that of the rows it was made of. */
  readonly onWritten?: (bytes: number, ofBytes: number) => void
}

const lineage = ['_row_id', '_last_updated_sequence_number'] as const

/** Rows that are written aside to learn how large they become. */
const measuredRows = 65_536

/** Reads files of one partition with their deletes applied, and writes their rows as new files of that partition. */
export async function encodeGroup(encode: EncodeContext, files: readonly ScanFile[]): Promise<ContentFile[]> {
  const { table, context, duckDb, staging, signal } = encode
  const [first] = files
  if (first === undefined) return []
  assertCanWriteRows(table)
  assertInPlace(files, encode.settings)
  const reader = await TableReader.open(table, context, { duckDb, staging, ...(signal !== undefined && { signal }) })
  const written: ContentFile[] = []
  try {
    const writer = new GroupWriter(encode, reader, first.file.partition)
    let rest = wholeSlices(files).filter(({ to }) => to > 0)
    let ratio = await writer.measuredRatio(rest)
    while (rest.length > 0) {
      signal?.throwIfAborted()
      const split = nextSplit(rest, ratio, encode.settings)
      rest = split.rest
      const file = await writer.write(split.taken)
      if (file === undefined) continue
      written.push(file)
      const ofBytes = bytesOf(split.taken)
      encode.onWritten?.(file.fileSizeInBytes, ofBytes)
      ratio = file.fileSizeInBytes / Math.max(1, ofBytes)
    }
    assertRowCount(files, written)
    return written
  } catch (error) {
    await removeFiles(table, written)
    // What DuckDB says when it is interrupted is not the reason.
    signal?.throwIfAborted()
    throw error
  } finally {
    await reader.close()
  }
}

function assertInPlace(files: readonly ScanFile[], { strategy, outputSpecId }: RewriteSettings): void {
  const keys = new Set(files.map(({ file }) => partitionKey(file.specId, file.partition)))
  const isInPlace = keys.size === 1 && files.every(({ file }) => file.specId === outputSpecId)
  if (isInPlace && strategy === 'binpack') return
  throw new IcebergError(
    'metadata_unsupported',
    'Files are only bin-packed within their partition, not sorted or moved.',
  )
}

/** The rows of the next file: all that are left, when they make one. */
function nextSplit(rest: readonly Slice[], ratio: number, { sizes }: RewriteSettings) {
  const bytes = bytesOf(rest) * ratio
  if (expectedOutputFiles(bytes, sizes) === 1) return { taken: [...rest], rest: [] }
  return take(rest, splitBytes(bytes, sizes) / ratio)
}

/** Without deletes every row must be there; with them there cannot be more. */
function assertRowCount(files: readonly ScanFile[], written: readonly ContentFile[]): void {
  const before = files.reduce((sum, { file }) => sum + file.recordCount, 0)
  const after = written.reduce((sum, file) => sum + file.recordCount, 0)
  const vectors = files.reduce((sum, { deletes }) => sum + (deletes.vector?.file.recordCount ?? 0), 0)
  const isExact = files.every(({ deletes }) => deletes.positions.length + deletes.equality.length === 0)
  if (isExact ? after === before - vectors : after <= before - vectors) return
  throw new IcebergError(
    'proof_failed',
    `${files.length} files have ${before} rows by their manifests, of which vectors delete ${vectors}, and ${after} were written. Nothing was changed.`,
    { details: { before, vectors, after, files: files.map(({ file }) => file.filePath).slice(0, 100) } },
  )
}

class GroupWriter {
  readonly #encode: EncodeContext
  readonly #reader: TableReader
  readonly #partition: PartitionValues
  readonly #kind: FileKind

  constructor(encode: EncodeContext, reader: TableReader, partition: PartitionValues) {
    this.#encode = encode
    this.#reader = reader
    this.#partition = partition
    const { metadata } = encode.table
    const schema = schemaOf(metadata)
    this.#kind = {
      content: 'data',
      fields: [...schema.fields, ...(metadata.formatVersion < 3 ? [] : lineage.map((name) => metadataColumns[name]))],
      modes: metricsModes(schema, metadata.properties, sortOrderOf(metadata)),
      specId: encode.settings.outputSpecId,
      sortOrderId: 0,
    }
  }

  /** Writes rows as one file, and proves it; undefined when all of them are deleted. */
  async write(slices: readonly Slice[]): Promise<ContentFile | undefined> {
    const { table, tallies, settings, signal } = this.#encode
    const withHashes = settings.options.proof === 'checksum'
    const { fields } = this.#kind
    const tally = tallies.open()
    const { sql, release } = await this.#select(slices)
    const newFiles = new NewFiles(table.storage, signal === undefined ? {} : { signal })
    try {
      const source = {
        sql: tallies.counted(tally, fields, sql, withHashes),
        again: sql,
        begin: () => tallies.restart(tally),
      }
      const name = tableName(table.identifier)
      const { connection } = this.#reader
      const file = await writeFile(
        connection,
        newFiles,
        table,
        this.#kind,
        source,
        this.#partition,
        async (_, path) => {
          await assertNoNulls(connection, path, schemaOf(table.metadata).fields, name)
          const written = await tallyOf(connection, path, fields, withHashes)
          assertSameRows(tallies.close(tally), written, { table: name, file: path })
        },
      )
      if (file.recordCount === 0) {
        await newFiles.remove()
        return undefined
      }
      await newFiles.keep()
      return file
    } catch (error) {
      await newFiles.remove()
      throw error
    } finally {
      tallies.close(tally)
      await release()
    }
  }

  /** How many bytes a byte of the input becomes. It matters only when the rows may fill more than one file. */
  async measuredRatio(slices: readonly Slice[]): Promise<number> {
    if (bytesOf(slices) < this.#encode.settings.sizes.target / 2) return 1
    const middle = slices[Math.floor(slices.length / 2)] as Slice
    const { sql, release } = await this.#select([middle])
    const folder = await temporaryFolder('measure')
    try {
      const { fields, modes } = this.#kind
      const { properties } = this.#encode.table.metadata
      const sample = `select * from (${sql}) limit ${measuredRows}`
      const path = join(folder, 'rows.parquet')
      const written = await writeParquetFile(this.#reader.connection, sample, path, { fields, modes, properties })
      if (written.recordCount === 0) return 1
      const rowBytes = sliceBytes(middle) / Math.max(1, middle.to - middle.from)
      return Math.min(10, Math.max(0.1, written.fileSizeInBytes / written.recordCount / Math.max(0.001, rowBytes)))
    } finally {
      await rm(folder, { recursive: true, force: true })
      await release()
    }
  }

  /** The live rows of slices, in their order as far as they can be read as one. */
  async #select(slices: readonly Slice[]): Promise<{ sql: string; release: () => Promise<void> }> {
    const { metadata } = this.#encode.table
    const schema = schemaOf(metadata)
    const selection = {
      fields: schema.fields,
      metadataColumns: metadata.formatVersion < 3 ? [] : lineage,
      nameOf: ({ name }: Pick<Field, 'name'>) => name,
    }
    const selected: { group: SelectedGroup; sql: string }[] = []
    const release = async (): Promise<void> => {
      for (const { group } of selected) await group.release()
    }
    try {
      const whole = slices.filter(isWhole).map(({ scanned }) => scanned)
      for (const group of await this.#reader.selectGroups(whole, selection)) selected.push({ group, sql: group.sql })
      for (const { scanned, from, to } of slices.filter((slice) => !isWhole(slice))) {
        const withPosition = { ...selection, metadataColumns: [...selection.metadataColumns, '_pos' as const] }
        for (const group of await this.#reader.selectGroups([scanned], withPosition)) {
          const sql = `select * exclude (_pos) from (${group.sql}) where _pos >= ${from} and _pos < ${to}`
          selected.push({ group, sql })
        }
      }
      return { sql: selected.map(({ sql }) => sql).join(' union all '), release }
    } catch (error) {
      await release()
      throw error
    }
  }
}
