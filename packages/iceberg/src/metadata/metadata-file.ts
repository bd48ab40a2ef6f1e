import { promisify } from 'node:util'
import { gunzip, gunzipSync, gzip, gzipSync } from 'node:zlib'
import { parseJsonSteps } from '../json/parse-steps.ts'
import { atOnce, inSlices, type Steps } from '../json/steps.ts'
import { propertyOf, tableProperties } from '../properties.ts'
import type { TableMetadata } from './table-metadata.ts'
import { tableMetadataSteps, tableMetadataText } from './table-metadata-json.ts'

const gunzipped = promisify(gunzip)
const gzipped = promisify(gzip)
/** Characters of a metadata file that are encoded in one go. */
const pieceLength = 1024 * 1024

/** Reads a metadata file. Gzip is told by its first bytes, whatever the name of the file. */
export function parseTableMetadata(content: Uint8Array | string, location = 'table metadata'): TableMetadata {
  const bytes = typeof content === 'string' ? Buffer.from(content) : content
  return atOnce(parseSteps(isGzip(bytes) ? gunzipSync(bytes) : bytes, location))
}

/** The same in slices, with turns for others between them. A file may have 100,000 snapshots. */
export async function readTableMetadata(content: Uint8Array, location: string): Promise<TableMetadata> {
  return await inSlices(parseSteps(isGzip(content) ? await gunzipped(content) : content, location))
}

function* parseSteps(content: Uint8Array, location: string): Steps<TableMetadata> {
  return yield* tableMetadataSteps(yield* parseJsonSteps(content, location), location)
}

function isGzip(content: Uint8Array): boolean {
  return content[0] === 0x1f && content[1] === 0x8b
}

/** Writes a metadata file; gzip when the name it will have says so (`.gz.metadata.json` or `.metadata.json.gz`). */
export function serializeTableMetadata(metadata: TableMetadata, location: string): Uint8Array {
  const text = atOnce(encodeSteps(metadata))
  return isGzipMetadata(location) ? gzipSync(text) : text
}

/** The same in slices. */
export async function encodeTableMetadata(metadata: TableMetadata, location: string): Promise<Uint8Array> {
  const text = await inSlices(encodeSteps(metadata))
  return isGzipMetadata(location) ? await gzipped(text) : text
}

function* encodeSteps(metadata: TableMetadata): Steps<Buffer> {
  const pieces: Buffer[] = []
  let text = ''
  for (const more of tableMetadataText(metadata)) {
    text += more
    if (text.length >= pieceLength) {
      pieces.push(Buffer.from(text, 'utf8'))
      text = ''
    }
    yield
  }
  pieces.push(Buffer.from(text, 'utf8'))
  // In steps, for the memory of a large file is only had as it is filled.
  const whole = Buffer.allocUnsafe(pieces.reduce((sum, piece) => sum + piece.length, 0))
  let at = 0
  for (const piece of pieces) {
    at += piece.copy(whole, at)
    yield
  }
  return whole
}

function isGzipMetadata(location: string): boolean {
  return location.endsWith('.gz.metadata.json') || location.endsWith('.metadata.json.gz')
}

/** What follows the version in a metadata file's name, by the table's `write.metadata.compression-codec`. */
export function metadataFileExtension(properties: Readonly<Record<string, string>>): string {
  return propertyOf({ properties }, tableProperties.metadataCodec) === 'gzip' ? '.gz.metadata.json' : '.metadata.json'
}
