import { expect } from 'vitest'
import { findSnapshot, manifestsOf, readManifest, type LoadedTable, type ManifestEntry } from '../../../src/index.ts'

/** Reads what the snapshots of a table refer to; manifests never change, so each is read once. */
export class Inspector {
  readonly #manifests = new Map<string, readonly ManifestEntry[]>()

  async entriesAt(loaded: LoadedTable, snapshotId: bigint): Promise<{ paths: string[]; entries: ManifestEntry[] }> {
    const snapshot = findSnapshot(loaded.metadata, snapshotId)
    if (snapshot === undefined) throw new Error(`${snapshotId} is gone`)
    const paths = snapshot.manifestList === undefined ? [] : [snapshot.manifestList]
    const entries: ManifestEntry[] = []
    for (const manifest of await manifestsOf(loaded, snapshot)) {
      const { manifestPath } = manifest
      // What an entry inherits follows from the manifest list, which differs between format versions.
      const key = [manifestPath, manifest.sequenceNumber, manifest.firstRowId].join(' ')
      const known = this.#manifests.get(key) ?? readManifest(await loaded.storage.read(manifestPath), manifest)
      this.#manifests.set(key, known)
      paths.push(manifestPath)
      entries.push(...known)
    }
    return { paths, entries }
  }

  /** Every file that a snapshot of the table reaches is there, and no data file has two vectors. Returns the paths. */
  async expectSound(loaded: LoadedTable, files: ReadonlyMap<string, unknown>): Promise<Set<string>> {
    const reached = new Set<string>()
    for (const { snapshotId } of loaded.metadata.snapshots) {
      const { paths, entries } = await this.entriesAt(loaded, snapshotId)
      for (const path of paths) reached.add(path)
      for (const { file } of entries) reached.add(file.filePath)
      const vectors = entries
        .filter(({ file }) => file.content === 'position-deletes' && file.fileFormat === 'puffin')
        .map(({ file }) => file.referencedDataFile)
      expect(vectors, `vectors of ${snapshotId}`).toEqual([...new Set(vectors)])
    }
    const missing = [...reached].filter((path) => !files.has(path))
    expect(missing, 'files that the table needs').toEqual([])
    return reached
  }
}
