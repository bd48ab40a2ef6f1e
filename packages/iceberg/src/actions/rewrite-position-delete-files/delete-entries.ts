import type { LoadedTable } from '../../catalogs/catalog.ts'
import type { ManifestEntry } from '../../manifests/content-file.ts'
import { partitionTypesOf } from '../../manifests/partition-type.ts'
import type { Snapshot } from '../../metadata/snapshot.ts'
import { onlyPath } from '../../snapshot/delete.ts'
import { manifestsOf } from '../../snapshot/live-files.ts'
import { readManifests } from '../../snapshot/read-manifests.ts'
import { pathAlone } from '../../storage/location.ts'

/** A file of position deletes, or a vector, that is live. */
export interface DeleteEntry extends ManifestEntry {
  readonly manifestPath: string
  /** The one data file it is for, if it is for one. */
  readonly only: string | undefined
}

export async function deleteEntries(
  table: LoadedTable,
  snapshot: Snapshot | undefined,
  signal: AbortSignal | undefined,
): Promise<DeleteEntry[]> {
  const manifests = (await manifestsOf(table, snapshot)).filter(({ content }) => content === 'deletes')
  const found: DeleteEntry[] = []
  // Bounds tell which data file position deletes are for.
  const options = { partitionOf: typesOf(table), statistics: true, signal }
  for await (const { manifest, entries } of readManifests(table.storage, manifests, options)) {
    for (const entry of entries) {
      if (entry.file.content !== 'position-deletes') continue
      found.push({ ...entry, manifestPath: manifest.manifestPath, only: onlyPath(entry.file) })
    }
  }
  return found
}

export function isVector({ file }: ManifestEntry): boolean {
  return file.contentOffset !== undefined
}

/** What deletes name, as it is in the table now. */
export interface NamedData {
  readonly live: ReadonlyMap<string, ManifestEntry>
  /** Paths that are not live but for another spelling: the live file with the same path, of another scheme or authority. */
  readonly spelledOtherwise: ReadonlyMap<string, string>
}

/** Looks for data files by their paths. Memory grows with what is looked for, not with the table. */
export async function findData(
  table: LoadedTable,
  snapshot: Snapshot | undefined,
  paths: ReadonlySet<string>,
  signal: AbortSignal | undefined,
): Promise<NamedData> {
  const live = new Map<string, ManifestEntry>()
  const spelledOtherwise = new Map<string, string>()
  if (paths.size === 0) return { live, spelledOtherwise }
  const byKey = new Map<string, string[]>()
  for (const path of paths) byKey.set(pathAlone(path), [...(byKey.get(pathAlone(path)) ?? []), path])
  const manifests = (await manifestsOf(table, snapshot)).filter(({ content }) => content === 'data')
  const options = { partitionOf: typesOf(table), statistics: false, signal }
  for await (const { entries } of readManifests(table.storage, manifests, options)) {
    for (const entry of entries) {
      const { filePath } = entry.file
      if (paths.has(filePath)) live.set(filePath, entry)
      for (const path of byKey.get(pathAlone(filePath)) ?? []) {
        if (path !== filePath) spelledOtherwise.set(path, filePath)
      }
    }
  }
  for (const path of live.keys()) spelledOtherwise.delete(path)
  return { live, spelledOtherwise }
}

function typesOf({ metadata }: LoadedTable) {
  return (specId: number) => partitionTypesOf(metadata, specId)
}
