import type { ManifestFile } from '../manifests/manifest-file.ts'
import type { NewManifestEntry } from '../manifests/write-manifest.ts'
import { propertyOf, tableProperties } from '../properties.ts'
import { mapOrdered } from '../storage/ordered.ts'
import { targetManifestBytes } from './new-manifests.ts'
import { contentKey, type PlannedManifest, type SnapshotDraft } from './snapshot-work.ts'

/** Groups that are merged at the same time, and manifests of one that are read. */
const parallelGroups = 2
const parallelReads = 8

/**
 * Puts small manifests of one kind together, as Iceberg's Java does with every commit. The manifests of a spec are
 * packed in their order, from the last, into groups of `commit.manifest.target-size-bytes`, and each group becomes one
 * manifest. The group with the first manifest, which is the newest, waits until it has
 * `commit.manifest.min-count-to-merge`: else every commit would write it anew.
 */
export async function mergeManifests(
  draft: SnapshotDraft,
  manifests: readonly PlannedManifest[],
): Promise<PlannedManifest[]> {
  const { metadata } = draft.table
  const [first] = manifests
  if (first === undefined || !propertyOf(metadata, tableProperties.manifestMergeEnabled)) {
    return [...manifests]
  }
  const minCount = propertyOf(metadata, tableProperties.manifestMinCountToMerge)
  const specIds = [...new Set(manifests.map(({ manifest }) => manifest.partitionSpecId))].toSorted((a, b) => b - a)
  const bins = specIds.flatMap((specId) =>
    packedFromEnd(
      manifests.filter(({ manifest }) => manifest.partitionSpecId === specId),
      targetManifestBytes(metadata),
    ),
  )
  const merged: PlannedManifest[] = []
  for await (const bin of mapOrdered(bins, parallelGroups, async (bin) => {
    const waits = bin.length === 1 || (bin.includes(first) && bin.length < minCount)
    return waits ? bin : await merge(draft, bin)
  })) {
    merged.push(...bin)
  }
  return merged
}

function packedFromEnd(manifests: readonly PlannedManifest[], target: number): PlannedManifest[][] {
  const bins: PlannedManifest[][] = []
  let bytes = 0
  for (const planned of manifests.toReversed()) {
    const { manifestLength }: ManifestFile = planned.manifest
    bytes += manifestLength
    const [bin] = bins
    if (bin !== undefined && bytes <= target) bin.unshift(planned)
    else {
      bins.unshift([planned])
      bytes = manifestLength
    }
  }
  return bins
}

async function merge(draft: SnapshotDraft, bin: readonly PlannedManifest[]): Promise<readonly PlannedManifest[]> {
  const key = bin.map(({ manifest }) => contentKey(manifest)).join('\n')
  const known = draft.work.merged.get(key)
  if (known !== undefined) return known
  const entries: NewManifestEntry[] = []
  for await (const read of mapOrdered(bin, parallelReads, async (planned) => {
    draft.signal?.throwIfAborted()
    return await planned.entries()
  })) {
    for (const entry of read) entries.push(entry)
  }
  const encoded = await draft.encode(entries, Number.POSITIVE_INFINITY)
  const merged = encoded.map(({ manifest, content }): PlannedManifest => ({
    manifest,
    isNew: true,
    content,
    entries: () => Promise.reject(new Error(`${manifest.manifestPath} is merged, and is not merged again`)),
  }))
  for (const each of merged) await draft.storeIfLarge(each)
  await draft.drop(bin)
  draft.work.merged.set(key, merged)
  return merged
}
