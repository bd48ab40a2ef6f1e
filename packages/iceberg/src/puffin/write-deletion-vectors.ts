import { deletionVectorType, serializeDeletionVector } from './deletion-vector.ts'
import type { PositionSet } from './position-set.ts'
import { type PuffinBlob, writePuffin } from './puffin.ts'

/** The column that positions are of, as the format reserves it: the position of a row in its file. */
const rowPositionId = 2_147_483_645

/** A deletion vector in a Puffin file: what its manifest entry says of it. */
export interface WrittenDeletionVector {
  readonly referencedDataFile: string
  readonly cardinality: number
  readonly contentOffset: number
  readonly contentSizeInBytes: number
}

/** Writes the vectors of any number of data files into one Puffin file. */
export function writeDeletionVectors(
  vectors: Iterable<readonly [dataFile: string, positions: PositionSet]>,
  properties: Readonly<Record<string, string>> = {},
): { content: Buffer; vectors: WrittenDeletionVector[] } {
  const blobs = [...vectors].map(([dataFile, positions]) => ({
    type: deletionVectorType,
    fields: [rowPositionId],
    // Inherited from the manifest entry, as it is not known yet.
    snapshotId: -1n,
    sequenceNumber: -1n,
    properties: { 'referenced-data-file': dataFile, cardinality: String(positions.size) },
    content: serializeDeletionVector(positions),
  }))
  const written = writePuffin(blobs, properties)
  return { content: written.content, vectors: written.blobs.map(describe) }
}

function describe(blob: PuffinBlob): WrittenDeletionVector {
  return {
    referencedDataFile: blob.properties?.['referenced-data-file'] ?? '',
    cardinality: Number(blob.properties?.['cardinality']),
    contentOffset: blob.offset,
    contentSizeInBytes: blob.length,
  }
}
