import { IcebergError } from '../errors.ts'
import type { ManifestEntry } from '../manifests/content-file.ts'
import type { ManifestFile } from '../manifests/manifest-file.ts'
import type { PartitionTypeField } from '../manifests/partition-type.ts'
import { manifestBatches } from '../manifests/read-manifest.ts'
import type { Storage } from '../storage/storage.ts'
import { mapOrdered } from '../storage/ordered.ts'

/** Bytes of manifests that wait to be decoded. A manifest that is larger is read alone. */
const maxWaitingBytes = 16 * 1024 * 1024

export interface ReadManifestsOptions {
  readonly partitionOf: (specId: number) => readonly PartitionTypeField[]
  /** Also counts, sizes and bounds by column. */
  readonly statistics: boolean
  /** Also entries that say that a file was deleted. Default: false. */
  readonly deleted?: boolean
  /** Manifests that are fetched at the same time. Default 8. */
  readonly concurrency?: number | undefined
  readonly signal?: AbortSignal | undefined
}

/**
 * The entries of manifests, some at a time, in the order of the manifests. Several are fetched ahead and wait as
 * they are; only one is decoded at a time, a part of a block at a time, so that memory does not grow with their length.
 */
export async function* readManifests(
  storage: Storage,
  manifests: readonly ManifestFile[],
  { partitionOf, statistics, deleted = false, concurrency = 8, signal }: ReadManifestsOptions,
): AsyncGenerator<{ manifest: ManifestFile; entries: ManifestEntry[] }> {
  const fetched = mapOrdered(
    manifests,
    concurrency,
    async (manifest) => {
      signal?.throwIfAborted()
      return { manifest, bytes: await storage.read(manifest.manifestPath, undefined, { signal }) }
    },
    { of: (manifest) => manifest.manifestLength, max: maxWaitingBytes },
  )
  for await (const { manifest, bytes } of fetched) {
    const partition = partitionOf(manifest.partitionSpecId)
    for (const entries of manifestBatches(bytes, manifest, { statistics, deleted, partition })) {
      signal?.throwIfAborted()
      for (const { file } of entries) {
        if (file.keyMetadata === undefined) continue
        throw new IcebergError('metadata_unsupported', `${file.filePath} is encrypted; encryption is not supported.`)
      }
      yield { manifest, entries }
    }
  }
}
