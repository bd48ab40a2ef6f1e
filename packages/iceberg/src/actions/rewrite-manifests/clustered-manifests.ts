import { IcebergError } from '../../errors.ts'
import { fileKey, type ManifestEntry } from '../../manifests/content-file.ts'
import { readManifest } from '../../manifests/read-manifest.ts'
import type { NewManifestEntry } from '../../manifests/write-manifest.ts'
import { encodeManifests, type EncodedManifest, type EncodeOptions } from '../../write/new-manifests.ts'

type ClusteredOptions = Pick<EncodeOptions, 'table' | 'partition' | 'targetBytes' | 'newPath'>

/**
 * Encodes sorted entries as manifests of about the target size, of which no two neighbours would fit into one: then the
 * next plan finds nothing to do. Each is read again and compared before it is given out.
 */
export function* clusteredManifests(
  entries: readonly ManifestEntry[],
  options: ClusteredOptions,
): Generator<EncodedManifest> {
  let waiting: EncodedManifest | undefined
  const existing = entries.map((entry): NewManifestEntry => ({ ...entry, status: 'existing' }))
  for (const encoded of encode(existing, options)) {
    if (waiting === undefined) {
      waiting = encoded
      continue
    }
    const both = waiting.manifest.manifestLength + encoded.manifest.manifestLength
    if (both <= options.targetBytes) {
      const joined = [...waiting.entries, ...encoded.entries]
      ;[waiting] = encode(joined, { ...options, targetBytes: Number.POSITIVE_INFINITY })
      continue
    }
    yield proven(waiting, options)
    waiting = encoded
  }
  if (waiting !== undefined) yield proven(waiting, options)
}

function encode(entries: readonly NewManifestEntry[], options: ClusteredOptions): Generator<EncodedManifest> {
  // No entry is of the snapshot being made, so none names it.
  return encodeManifests(entries, { ...options, snapshotId: 0n, inheritsSnapshotId: true })
}

/** Reads a manifest as others will read it: every entry must be what it was. */
function proven(encoded: EncodedManifest, { table, partition }: ClusteredOptions): EncodedManifest {
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
