import { IcebergError } from '../../errors.ts'
import type { ContentFile } from '../../manifests/content-file.ts'
import type { ScanFile } from '../../scan/plan.ts'
import { TableReader } from '../../scan/table-reader.ts'
import { removeFiles } from '../../write/remove-files.ts'
import { assertCanWriteRows } from '../../write/write-files.ts'
import { staysInPlace } from './copyable.ts'
import { encodeInPlace } from './encode-in-place.ts'
import { encodeOrdered } from './encode-ordered.ts'
import { RowSource, type EncodeContext } from './row-source.ts'

/** Reads files with their deletes applied, and writes their rows as new files. */
export async function encodeGroup(encode: EncodeContext, files: readonly ScanFile[]): Promise<ContentFile[]> {
  const { table, context, duckDb, staging, signal } = encode
  if (files.length === 0) return []
  assertCanWriteRows(table)
  const reader = await TableReader.open(table, context, { duckDb, staging, ...(signal !== undefined && { signal }) })
  try {
    const source = new RowSource(encode, reader)
    const encoded = staysInPlace(files, encode.settings) ? encodeInPlace : encodeOrdered
    const written = await encoded(encode, reader, source, files)
    try {
      assertRowCount(files, written)
      return written
    } catch (error) {
      await removeFiles(table, written)
      throw error
    }
  } catch (error) {
    // What DuckDB says when it is interrupted is not the reason.
    signal?.throwIfAborted()
    throw error
  } finally {
    await reader.close()
  }
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
