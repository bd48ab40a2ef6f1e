import { randomUUID } from 'node:crypto'
import { IcebergError } from '../errors.ts'
import type { LoadedTable } from '../catalogs/catalog.ts'
import type { CandidateFile, FileKind } from '../snapshot/candidate-files.ts'
import { below, fileName } from '../storage/location.ts'
import { metadataFolderOf } from './own-locations.ts'

// Before a commit that makes files unreachable, their paths are written beside the table's metadata, in parts:
//   <metadata>/_fencepost/deletions/<run>-00001.jsonl
// The first line says whose they are and how many; each of the others is one file. A part is removed once its files are
// gone. A run that finds parts of another first verifies them against the fresh table, then deletes what nothing
// reaches, then removes the parts: whatever interrupted the other run, nothing of it stays. A part with a file that is
// still reached may be that of a run that has not committed yet, so it stays for a day.
//
// Names that begin with _ are left alone by every engine's removal of orphans.

export interface ListPart {
  readonly location: string
  readonly files: readonly CandidateFile[]
}

const partFiles = 50_000
const format = 1

export function fencepostFolder({ metadata }: Pick<LoadedTable, 'metadata'>, name: string): string {
  return below(metadataFolderOf(metadata), '_fencepost', name)
}

/** Writes the files as parts of one run. `onPart` is told of each before it is written. Returns the bytes written. */
export async function writeDeletionList(
  table: LoadedTable,
  files: AsyncIterable<readonly CandidateFile[]>,
  onPart: (location: string) => void,
  signal?: AbortSignal,
): Promise<number> {
  const run = randomUUID()
  let part: CandidateFile[] = []
  let parts = 0
  let bytes = 0
  const flush = async (): Promise<void> => {
    if (part.length === 0) return
    parts += 1
    const location = below(fencepostFolder(table, 'deletions'), `${run}-${String(parts).padStart(5, '0')}.jsonl`)
    const content = serialized(table, part)
    part = []
    onPart(location)
    await table.storage.write(location, content, { exclusive: true, signal })
    bytes += content.length
  }
  for await (const batch of files) {
    part.push(...batch)
    if (part.length >= partFiles) await flush()
  }
  await flush()
  return bytes
}

function serialized({ metadata }: LoadedTable, files: readonly CandidateFile[]): Buffer {
  const head = { format, 'table-uuid': metadata.tableUuid ?? null, files: files.length }
  const lines = [JSON.stringify(head), ...files.map((file) => JSON.stringify([file.kind, file.bytes, file.path]))]
  return Buffer.from(`${lines.join('\n')}\n`)
}

export interface PendingPart {
  readonly location: string
  readonly writtenAt: Date
}

/** The parts that earlier runs have left, and those of runs that are under way. */
export async function pendingParts(table: LoadedTable): Promise<PendingPart[]> {
  const parts: PendingPart[] = []
  for await (const { location, modifiedAt } of table.storage.list(fencepostFolder(table, 'deletions'))) {
    if (/^[0-9a-f-]{36}-\d{5}\.jsonl$/.test(fileName(location))) parts.push({ location, writtenAt: modifiedAt })
  }
  return parts.toSorted((a, b) => (a.location < b.location ? -1 : 1))
}

/** A part; undefined when it is gone by now, or belongs to another table that was at this location. */
export async function readPart(table: LoadedTable, location: string): Promise<ListPart | undefined> {
  const content = await readIfThere(table, location)
  if (content === undefined) return undefined
  const [first = '', ...lines] = Buffer.from(content).toString('utf8').trimEnd().split('\n')
  const head = JSON.parse(first) as { format: number; 'table-uuid': string | null; files: number }
  if (head.format !== format || head.files !== lines.length) {
    throw new IcebergError(
      'metadata_invalid',
      `${location} is not a whole list of deletions of this release. Look at it, and remove it if nobody needs it.`,
    )
  }
  if (head['table-uuid'] !== (table.metadata.tableUuid ?? null)) return undefined
  const files = lines.map((line) => {
    const [kind, bytes, path] = JSON.parse(line) as [FileKind, number, string]
    return { kind, bytes, path, modifiedAtMs: 0 }
  })
  return { location, files }
}

async function readIfThere({ storage }: LoadedTable, location: string): Promise<Uint8Array | undefined> {
  try {
    return await storage.read(location)
  } catch (error) {
    if (error instanceof IcebergError && error.code === 'storage_not_found') return undefined
    throw error
  }
}
