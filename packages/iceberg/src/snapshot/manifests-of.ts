import type { ManifestFile } from '../manifests/manifest-file.ts'
import { readManifestList } from '../manifests/read-manifest-list.ts'
import { embeddedManifest } from '../manifests/read-manifest.ts'
import type { Snapshot } from '../metadata/snapshot.ts'
import type { TableMetadata } from '../metadata/table-metadata.ts'
import { mapOrdered } from '../storage/ordered.ts'
import type { Storage } from '../storage/storage.ts'

/** A table to be read: its metadata, and where its files are. */
export interface ScannedTable {
  readonly metadata: TableMetadata
  readonly storage: Storage
}

/** The manifests of a snapshot, from its manifest list or, in old v1 tables, from itself. */
export async function manifestsOf({ storage }: ScannedTable, snapshot: Snapshot): Promise<ManifestFile[]> {
  const { manifestList, manifests = [] } = snapshot
  if (manifestList !== undefined) return readManifestList(await storage.read(manifestList), manifestList)
  const files: ManifestFile[] = []
  for await (const file of mapOrdered(manifests, 8, async (path) =>
    embeddedManifest(await storage.read(path), path, snapshot),
  ))
    files.push(file)
  return files
}
