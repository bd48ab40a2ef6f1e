import { gunzipSync, gzipSync } from 'node:zlib'
import { parseJson, stringifyJson } from '../json/json.ts'
import { propertyOf, tableProperties } from '../properties.ts'
import type { TableMetadata } from './table-metadata.ts'
import { tableMetadataFromJson, tableMetadataToJson } from './table-metadata-json.ts'

/** Reads a metadata file. Gzip is told by its first bytes, whatever the name of the file. */
export function parseTableMetadata(content: Uint8Array | string, location = 'table metadata'): TableMetadata {
  return tableMetadataFromJson(parseJson(metadataText(content), location), location)
}

function metadataText(content: Uint8Array | string): string {
  if (typeof content === 'string') return content
  const gzipped = content[0] === 0x1f && content[1] === 0x8b
  return new TextDecoder('utf-8', { ignoreBOM: false }).decode(gzipped ? gunzipSync(content) : content)
}

/** Writes a metadata file; gzip when the name it will have says so (`.gz.metadata.json` or `.metadata.json.gz`). */
export function serializeTableMetadata(metadata: TableMetadata, location: string): Uint8Array {
  const text = Buffer.from(stringifyJson(tableMetadataToJson(metadata)), 'utf8')
  return isGzipMetadata(location) ? gzipSync(text) : text
}

function isGzipMetadata(location: string): boolean {
  return location.endsWith('.gz.metadata.json') || location.endsWith('.metadata.json.gz')
}

/** What follows the version in a metadata file's name, by the table's `write.metadata.compression-codec`. */
export function metadataFileExtension(properties: Readonly<Record<string, string>>): string {
  return propertyOf({ properties }, tableProperties.metadataCodec) === 'gzip' ? '.gz.metadata.json' : '.metadata.json'
}
