import { randomUUID } from 'node:crypto'
import { rm, writeFile as writeLocal } from 'node:fs/promises'
import { join } from 'node:path'
import type { LoadedTable } from '../catalogs/catalog.ts'
import { IcebergError } from '../errors.ts'
import type { ContentFile, ManifestEntry } from '../manifests/content-file.ts'
import { partitionKey } from '../manifests/partition-key.ts'
import { explained, type DuckDb } from '../parquet/duckdb.ts'
import { loadRows, newRows } from '../parquet/load-rows.ts'
import type { MetricsMode } from '../parquet/metrics-modes.ts'
import { parquetSource } from '../parquet/parquet-table.ts'
import { parseDeletionVector } from '../puffin/deletion-vector.ts'
import type { PositionSet } from '../puffin/position-set.ts'
import { writeDeletionVectors } from '../puffin/write-deletion-vectors.ts'
import type { Field } from '../schema/type.ts'
import { deletePathId, deletePositionId } from '../snapshot/delete.ts'
import { temporaryFolder } from '../storage/temporary-folder.ts'
import { newDataLocation } from './data-location.ts'
import { removeFiles } from './remove-files.ts'
import { writeParts, type FileKind, type Part } from './write-files.ts'

const fields: readonly Field[] = [
  { id: deletePathId, name: 'file_path', required: true, type: { type: 'string' } },
  { id: deletePositionId, name: 'pos', required: true, type: { type: 'long' } },
]
// Never cut: readers tell by equal bounds of the path that a file of deletes is for one data file.
const modes = new Map<number, MetricsMode>([
  [deletePathId, { mode: 'full' }],
  [deletePositionId, { mode: 'full' }],
])

/** A data file, and rows of it to delete. */
export interface DeleteTarget {
  readonly entry: ManifestEntry
  readonly positions: PositionSet
}

/** Writes files of positions, for each data file or for each partition. */
export async function writePositionFiles(
  duckdb: DuckDb,
  table: LoadedTable,
  targets: readonly DeleteTarget[],
  granularity: 'file' | 'partition',
): Promise<ContentFile[]> {
  const groups = new Map<string, { number: number; part: Part; paths: string[] }>()
  const numbers = new Map<string, number>()
  for (const { entry } of targets) {
    const { filePath, specId, partition } = entry.file
    const key = granularity === 'file' ? filePath : partitionKey(specId, partition)
    const kind: FileKind = { content: 'position-deletes', fields, modes, specId }
    const group = groups.get(key) ?? { number: groups.size, part: { kind, partition }, paths: [] }
    group.paths.push(filePath)
    groups.set(key, group)
    numbers.set(filePath, group.number)
  }
  return await duckdb.using(async (connection) => {
    await loadRows(connection, fields, rowsOf(targets), (row) => numbers.get(String(row['file_path'])) ?? -1)
    const parts = [...groups.values()]
    const orderBy = `order by ${newRows}.c0, ${newRows}.c1`
    const written = await writeParts(
      connection,
      table,
      parts.map(({ part }) => part),
      orderBy,
    )
    return written.flatMap((files, number) => {
      const [path, ...others] = parts[number]?.paths ?? []
      return files.map((file) => (others.length > 0 ? file : { ...file, referencedDataFile: path }))
    })
  })
}

function* rowsOf(targets: readonly DeleteTarget[]): Generator<{ file_path: string; pos: bigint }> {
  for (const { entry, positions } of targets) {
    for (const position of positions) yield { file_path: entry.file.filePath, pos: BigInt(position) }
  }
}

/** Writes a deletion vector for each data file, all into one Puffin file. */
export async function writeVectors(table: LoadedTable, targets: readonly DeleteTarget[]): Promise<ContentFile[]> {
  const byPath = new Map(targets.map((target) => [target.entry.file.filePath, target]))
  const vectors = targets.map(({ entry, positions }) => [entry.file.filePath, positions] as const)
  const { content, vectors: written } = writeDeletionVectors(vectors, { 'created-by': 'fencepost' })
  const filePath = newDataLocation(table.metadata, '', '-deletes.puffin')
  try {
    await table.storage.write(filePath, content)
  } catch (error) {
    await removeFiles(table, [filePath]) // it may be there all the same
    throw error
  }
  return written.map((vector): ContentFile => {
    const { specId, partition } = byPath.get(vector.referencedDataFile)?.entry.file ?? { specId: -1, partition: [] }
    return {
      content: 'position-deletes',
      filePath,
      fileFormat: 'puffin',
      specId,
      partition,
      recordCount: vector.cardinality,
      fileSizeInBytes: content.length,
      referencedDataFile: vector.referencedDataFile,
      contentOffset: vector.contentOffset,
      contentSizeInBytes: vector.contentSizeInBytes,
    }
  })
}

export async function readVector(table: LoadedTable, file: ContentFile): Promise<PositionSet> {
  const range = { offset: file.contentOffset ?? 0, length: file.contentSizeInBytes ?? 0 }
  return parseDeletionVector(await table.storage.read(file.filePath, range))
}

/** The rows that a file of position deletes names, by data file. */
export async function readPositions(
  duckdb: DuckDb,
  table: LoadedTable,
  file: ContentFile,
): Promise<Map<string, number[]>> {
  if (file.fileFormat.toLowerCase() !== 'parquet') {
    throw new IcebergError(
      'parquet_invalid',
      `${file.filePath} holds deletes as ${file.fileFormat}; only parquet can be read`,
    )
  }
  const folder = await temporaryFolder('deletes')
  try {
    const path = join(folder, `${randomUUID()}.parquet`)
    await writeLocal(path, await table.storage.read(file.filePath))
    const sql = `select file_path, pos::double as pos from ${parquetSource(path)}`
    const rows = await duckdb.using(async (c) => (await explained(c.runAndReadAll(sql))).getRows())
    const positions = new Map<string, number[]>()
    for (const [target, position] of rows) {
      const list = positions.get(String(target)) ?? []
      list.push(Number(position))
      positions.set(String(target), list)
    }
    return positions
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}
