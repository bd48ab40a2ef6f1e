import { IcebergError } from '../../errors.ts'
import { fileKey, type ManifestEntry } from '../../manifests/content-file.ts'
import { readManifest } from '../../manifests/read-manifest.ts'
import type { NewManifestEntry } from '../../manifests/write-manifest.ts'
import { encodeManifests, type EncodedManifest, type EncodeOptions } from '../../write/new-manifests.ts'

/**
 * Encodes sorted entries as manifests of about the target size, of which no two neighbours would fit into one: then the
 * next plan finds nothing to do. Each is read again and compared before it is given out.
 */
export function* clusteredManifests(
  entries: readonly ManifestEntry[],
  options: EncodeOptions,
): Generator<EncodedManifest> {
  let waiting: EncodedManifest | undefined
  const existing = entries.map((entry): NewManifestEntry => ({ ...entry, status: 'existing' }))
  for (const encoded of encodeManifests(existing, options)) {
    if (waiting === undefined) {
      waiting = encoded
      continue
    }
    const both = waiting.manifest.manifestLength + encoded.manifest.manifestLength
    if (both <= options.targetBytes) {
      const joined = [...waiting.entries, ...encoded.entries]
      ;[waiting] = encodeManifests(joined, { ...options, targetBytes: Number.POSITIVE_INFINITY })
      continue
    }
    yield proven(waiting, options)
    waiting = encoded
  }
  if (waiting !== undefined) yield proven(waiting, options)
}

/** Reads a manifest as others will read it: every entry must be what it was. */
function proven(encoded: EncodedManifest, { table, partition }: EncodeOptions): EncodedManifest {
  const { manifest, content, entries } = encoded
  const { formatVersion } = table.metadata
  // An entry that would inherit something gets what none has.
  const source = { ...manifest, sequenceNumber: formatVersion === 1 ? 0n : -1n, firstRowId: manifest.firstRowId ?? -1n }
  const read = readManifest(content, source, { deleted: true, statistics: false, partition })
  const wrong = entries.findIndex((entry, index) => !isSame(entry, read[index]))
  if (wrong === -1 && read.length === entries.length) return encoded
  throw new IcebergError(
    'manifest_invalid',
    `A new manifest does not read back as it was written, at entry ${wrong} (${entries[wrong]?.file.filePath}). ` +
      'Nothing was changed. This is a fault of this package.',
  )
}

function isSame(entry: NewManifestEntry, read: ManifestEntry | undefined): boolean {
  if (read === undefined || entry.status === 'added') return false
  return (
    read.status === entry.status &&
    read.snapshotId === entry.snapshotId &&
    read.sequenceNumber === entry.sequenceNumber &&
    read.fileSequenceNumber === entry.fileSequenceNumber &&
    fileKey(read.file) === fileKey(entry.file) &&
    read.file.recordCount === entry.file.recordCount &&
    (entry.file.firstRowId === undefined || read.file.firstRowId === entry.file.firstRowId)
  )
}
