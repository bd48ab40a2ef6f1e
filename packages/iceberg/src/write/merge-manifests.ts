import type { ManifestFile } from '../manifests/manifest-file.ts'
import type { NewManifestEntry } from '../manifests/write-manifest.ts'
import { entriesOf } from '../snapshot/live-files.ts'
import { targetManifestBytes, writeManifests, type Draft } from './new-manifests.ts'
import { removeFiles } from './remove-files.ts'

/**
 * Puts small manifests of one kind together, as Iceberg's Java does with every commit. The manifests of a spec are
 * packed in their order, from the last, into groups of `commit.manifest.target-size-bytes`, and each group becomes one
 * manifest. The group with the first manifest, which is the newest, waits until it has
 * `commit.manifest.min-count-to-merge`: else every commit would write it anew.
 */
export async function mergeManifests(draft: Draft, manifests: readonly ManifestFile[]): Promise<ManifestFile[]> {
  const { metadata } = draft.table
  const { properties } = metadata
  const [first] = manifests
  if (first === undefined || properties['commit.manifest-merge.enabled']?.toLowerCase() === 'false') {
    return [...manifests]
  }
  const minCount = Number(properties['commit.manifest.min-count-to-merge'] ?? 100)
  const merged: ManifestFile[] = []
  const specIds = [...new Set(manifests.map((manifest) => manifest.partitionSpecId))].toSorted((a, b) => b - a)
  for (const specId of specIds) {
    const group = manifests.filter((manifest) => manifest.partitionSpecId === specId)
    for (const bin of packedFromEnd(group, targetManifestBytes(metadata))) {
      const waits = bin.length === 1 || (bin.includes(first) && bin.length < minCount)
      merged.push(...(waits ? bin : await merge(draft, bin)))
    }
  }
  return merged
}

function packedFromEnd(manifests: readonly ManifestFile[], target: number): ManifestFile[][] {
  const bins: ManifestFile[][] = []
  let bytes = 0
  for (const manifest of manifests.toReversed()) {
    bytes += manifest.manifestLength
    const [bin] = bins
    if (bin !== undefined && bytes <= target) bin.unshift(manifest)
    else {
      bins.unshift([manifest])
      bytes = manifest.manifestLength
    }
  }
  return bins
}

async function merge(draft: Draft, bin: readonly ManifestFile[]): Promise<ManifestFile[]> {
  const { table, written } = draft
  const entries: NewManifestEntry[] = []
  for (const manifest of bin) {
    // What this commit adds and removes stays so; what was there before is no news, and what had gone is left out.
    const own = written.get(manifest.manifestPath)
    if (own !== undefined) {
      entries.push(...own)
      continue
    }
    const partition = await draft.typesOf(manifest.partitionSpecId)
    for (const entry of await entriesOf(table, manifest, { partition })) entries.push({ ...entry, status: 'existing' })
  }
  const manifests = await writeManifests(draft, entries, Number.POSITIVE_INFINITY)
  const needless = bin.map((manifest) => manifest.manifestPath).filter((path) => written.has(path))
  for (const path of needless) draft.files.delete(path)
  await removeFiles(table, needless)
  return manifests
}
