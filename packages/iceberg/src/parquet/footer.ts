import { parquetMetadataAsync, parquetSchema, type FileMetaData } from 'hyparquet'
import { IcebergError } from '../errors.ts'
import type { ByteRange } from '../storage/storage.ts'
import { parquetColumn, type ParquetColumn } from './parquet-column.ts'

/** What a Parquet file says of itself. */
export interface ParquetFooter {
  /** The columns at the top, in the order of the file. */
  readonly columns: readonly ParquetColumn[]
  readonly rowCount: number
  /** Where each row group begins: what Iceberg calls split offsets. */
  readonly splitOffsets: readonly number[]
  readonly keyValues: ReadonlyMap<string, string>
  /** Everything, as the file has it: row groups, column chunks, statistics. Text and bytes in statistics are raw bytes. */
  readonly metadata: FileMetaData
}

/** Where a footer is read from. */
export interface FooterSource {
  readonly location: string
  readonly size: number
  read(range: ByteRange): Promise<Uint8Array>
}

/** Reads the footer, and nothing else, of a Parquet file. */
export async function readFooter(source: FooterSource): Promise<ParquetFooter> {
  const metadata = await metadataOf(source)
  const root = parquetSchema(metadata)
  const columns = root.children.map(parquetColumn)
  const splitOffsets = metadata.row_groups.map(({ columns: chunks }) => {
    const first = chunks[0]?.meta_data
    if (first === undefined) throw invalid(source.location, 'a row group has no columns')
    const dictionary = first.dictionary_page_offset
    const data = first.data_page_offset
    // Some writers give 0 for a dictionary that is not there.
    return Number(dictionary === undefined || dictionary <= 0n || dictionary > data ? data : dictionary)
  })
  const keyValues = new Map((metadata.key_value_metadata ?? []).map(({ key, value }) => [key, value ?? '']))
  return { columns, rowCount: Number(metadata.num_rows), splitOffsets, keyValues, metadata }
}

async function metadataOf(source: FooterSource): Promise<FileMetaData> {
  const { location, size } = source
  if (size < 12) throw invalid(location, `it has only ${size} bytes`)
  const file = {
    byteLength: size,
    async slice(start: number, end: number = size): Promise<ArrayBuffer> {
      const bytes = await source.read({ offset: start, length: end - start })
      return bytes.slice().buffer
    },
  }
  try {
    return await parquetMetadataAsync(file, { initialFetchSize: 64 * 1024, parsers: rawStatistics, geoparquet: false })
  } catch (error) {
    if (error instanceof IcebergError) throw error
    throw invalid(location, error instanceof Error ? error.message : String(error), error)
  }
}

// Statistics are wanted as they are, not as dates and texts of JavaScript.
const raw = <T>(value: T): T => value
const rawStatistics = {
  stringFromBytes: raw,
  dateFromDays: raw,
  timestampFromMilliseconds: raw,
  timestampFromMicroseconds: raw,
  timestampFromNanoseconds: raw,
}

function invalid(location: string, why: string, cause?: unknown): IcebergError {
  return new IcebergError('parquet_invalid', `${location} cannot be read as Parquet: ${why}.`, {
    details: { location },
    ...(cause === undefined ? {} : { cause }),
  })
}
