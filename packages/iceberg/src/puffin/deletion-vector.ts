import { crc32 } from 'node:zlib'
import { IcebergError } from '../errors.ts'
import { viewOf } from '../values/bytes.ts'
import type { Container } from './container.ts'
import { PositionSet } from './position-set.ts'
import { readRoaring, writeRoaring } from './roaring.ts'

// A blob of type deletion-vector-v1: length of magic and vector (32 bits, big-endian), magic, vector, CRC-32 of magic
// and vector (big-endian). The vector: number of 32-bit bitmaps (64 bits, little-endian), then for each the high 32
// bits of its positions (little-endian) and the bitmap.
const magic = Buffer.from([0xd1, 0xd3, 0x39, 0x64])

/** The type of a deletion vector's blob in a Puffin file. */
export const deletionVectorType = 'deletion-vector-v1'

export function serializeDeletionVector(positions: PositionSet): Buffer {
  const vector = Buffer.concat([magic, serializePositions(positions)])
  const blob = Buffer.alloc(vector.length + 8)
  blob.writeUInt32BE(vector.length, 0)
  vector.copy(blob, 4)
  blob.writeUInt32BE(crc32(vector), vector.length + 4)
  return blob
}

/** Reads a blob as it stands at the offset and length that a manifest entry gives; checks its length and checksum. */
export function parseDeletionVector(blob: Uint8Array): PositionSet {
  const bytes = viewOf(blob)
  if (bytes.length < 20) throw invalid(`it has only ${bytes.length} bytes`)
  const length = bytes.readUInt32BE(0)
  if (length !== bytes.length - 8) throw invalid(`it says it has ${length} bytes, and has ${bytes.length - 8}`)
  const vector = bytes.subarray(4, -4)
  if (!vector.subarray(0, 4).equals(magic)) throw invalid('it does not begin with the magic number')
  if (crc32(vector) !== bytes.readUInt32BE(bytes.length - 4)) throw invalid('its checksum is wrong')
  return parsePositions(vector.subarray(4))
}

/** The vector alone: a 64-bit Roaring bitmap in its portable form. */
export function serializePositions(positions: PositionSet): Buffer {
  const byHigh = new Map<number, [number, Container][]>()
  for (const [key, container] of positions.containers()) {
    const high = Math.floor(key / 65536)
    const group = byHigh.get(high) ?? []
    group.push([key % 65536, container])
    byHigh.set(high, group)
  }
  const count = Buffer.alloc(8)
  count.writeBigUInt64LE(BigInt(byHigh.size))
  const parts: Buffer[] = [count]
  for (const [high, containers] of byHigh) {
    const key = Buffer.alloc(4)
    key.writeUInt32LE(high)
    parts.push(key, writeRoaring(containers))
  }
  return Buffer.concat(parts)
}

function parsePositions(vector: Uint8Array): PositionSet {
  const bytes = viewOf(vector)
  if (bytes.length < 8) throw invalid('its bitmap is cut')
  const count = bytes.readBigUInt64LE(0)
  const containers = new Map<number, Container>()
  let at = 8
  for (let i = 0n; i < count; i += 1n) {
    if (at + 4 > bytes.length) throw invalid('its bitmap is cut')
    const high = bytes.readUInt32LE(at)
    // Positions above 2^47 would need more rows than any file has.
    if (high >= 2 ** 15) throw invalid('it holds positions above 2^47')
    const bitmap = readRoaring(bytes, at + 4)
    for (const [key, container] of bitmap.containers) containers.set(high * 65536 + key, container)
    at = bitmap.end
  }
  if (at !== bytes.length) throw invalid('bytes follow its bitmap')
  return PositionSet.ofContainers(containers)
}

function invalid(message: string): IcebergError {
  return new IcebergError('puffin_invalid', `A deletion vector is damaged: ${message}`)
}
