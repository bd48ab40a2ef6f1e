import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { tableName } from '../../catalogs/catalog.ts'
import type { ContentFile, PartitionValues } from '../../manifests/content-file.ts'
import { schemaOf } from '../../metadata/table-metadata.ts'
import { writeParquetFile } from '../../parquet/write-file.ts'
import type { ScanFile } from '../../scan/plan.ts'
import type { TableReader } from '../../scan/table-reader.ts'
import { NewFiles } from '../../storage/new-files.ts'
import { temporaryFolder } from '../../storage/temporary-folder.ts'
import { removeFiles } from '../../write/remove-files.ts'
import { writeFile } from '../../write/write-files.ts'
import { assertNoNulls } from '../../write/write-relation.ts'
import type { RewriteSettings } from './options.ts'
import { assertSameRows, tallyOf } from './proof.ts'
import type { EncodeContext, RowSource } from './row-source.ts'
import { expectedOutputFiles, splitBytes } from './sizes.ts'
import { bytesOf, sliceBytes, take, wholeSlices, type Room, type Slice } from './slices.ts'

/** Rows that are written aside to learn how large they become. */
const measuredRows = 65_536

/** Writes the rows of files of one partition as new files of that partition, each straight from those it is made of. */
export async function encodeInPlace(
  encode: EncodeContext,
  reader: TableReader,
  source: RowSource,
  files: readonly ScanFile[],
): Promise<ContentFile[]> {
  const written: ContentFile[] = []
  try {
    const writer = new GroupWriter(encode, reader, source, files[0]?.file.partition ?? [])
    let rest = wholeSlices(files).filter(({ to }) => to > 0)
    let ratio = await writer.measuredRatio(rest)
    const room = stagingRoom(encode)
    while (rest.length > 0) {
      encode.signal?.throwIfAborted()
      const split = nextSplit(rest, ratio, encode.settings, room)
      rest = split.rest
      const file = await writer.write(split.taken)
      if (file === undefined) continue
      written.push(file)
      const ofBytes = bytesOf(split.taken)
      encode.onWritten?.(file.fileSizeInBytes, ofBytes)
      ratio = file.fileSizeInBytes / Math.max(1, ofBytes)
    }
    return written
  } catch (error) {
    await removeFiles(encode.table, written)
    throw error
  }
}

/** The rows of the next file: all that are left, when they make one. */
function nextSplit(rest: readonly Slice[], ratio: number, { sizes }: RewriteSettings, room: Room) {
  const bytes = bytesOf(rest) * ratio
  if (expectedOutputFiles(bytes, sizes) === 1) return take(rest, Number.POSITIVE_INFINITY, room)
  return take(rest, splitBytes(bytes, sizes) / ratio, room)
}

function stagingRoom({ staging, table: { storage } }: EncodeContext): Room {
  const of = ({ scanned: { file } }: Slice): number =>
    staging.bytesOf(storage, { location: file.filePath, size: file.fileSizeInBytes })
  return { bytes: staging.maxBytes, of }
}

class GroupWriter {
  readonly #encode: EncodeContext
  readonly #reader: TableReader
  readonly #source: RowSource
  readonly #partition: PartitionValues

  constructor(encode: EncodeContext, reader: TableReader, source: RowSource, partition: PartitionValues) {
    this.#encode = encode
    this.#reader = reader
    this.#source = source
    this.#partition = partition
  }

  /** Writes rows as one file, and proves it; undefined when all of them are deleted. */
  async write(slices: readonly Slice[]): Promise<ContentFile | undefined> {
    const { table, tallies, signal } = this.#encode
    const { kind, withHashes } = this.#source
    const { connection } = this.#reader
    const name = tableName(table.identifier)
    const tally = tallies.open()
    const { sql, release } = await this.#source.select(slices)
    const newFiles = new NewFiles(table.storage, signal === undefined ? {} : { signal })
    try {
      const noted = {
        sql: tallies.counted(tally, kind.fields, sql, withHashes),
        again: sql,
        begin: () => tallies.restart(tally),
      }
      const file = await writeFile(connection, newFiles, table, kind, noted, this.#partition, async (_, path) => {
        await assertNoNulls(connection, path, schemaOf(table.metadata).fields, name)
        const written = await tallyOf(connection, path, kind.fields, withHashes)
        assertSameRows(tallies.close(tally), written, { table: name, file: path })
      })
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
    const { table, settings } = this.#encode
    if (bytesOf(slices) < settings.sizes.target / 2) return 1
    const middle = slices[Math.floor(slices.length / 2)] as Slice
    const { sql, release } = await this.#source.select([middle])
    const folder = await temporaryFolder('measure')
    try {
      const { fields, modes } = this.#source.kind
      const { properties } = table.metadata
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
}
