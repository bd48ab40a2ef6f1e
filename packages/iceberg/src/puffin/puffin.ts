import { decompress as decompressZstd } from 'fzstd'
import { IcebergError } from '../errors.ts'
import { type Json, parseJson, stringifyJson } from '../json/json.ts'
import { compact, defined, isObject, ObjectReader } from '../json/object-reader.ts'
import { viewOf } from '../values/bytes.ts'

// Magic, blobs, footer. The footer: magic, JSON, length of the JSON (32 bits, little-endian), 4 bytes of flags, magic.
const magic = Buffer.from('PFA1', 'latin1')
const footerTail = 12
const compressedFooterFlag = 1

/** What a Puffin file says of one blob in it. */
export interface PuffinBlob {
  readonly type: string
  readonly fields: readonly number[]
  readonly snapshotId: bigint
  readonly sequenceNumber: bigint
  readonly offset: number
  readonly length: number
  readonly compressionCodec?: string
  readonly properties?: Readonly<Record<string, string>>
}

export interface PuffinFooter {
  readonly blobs: readonly PuffinBlob[]
  readonly properties: Readonly<Record<string, string>>
}

/** A blob to be written; blobs are never compressed. */
export type NewPuffinBlob = Omit<PuffinBlob, 'offset' | 'length' | 'compressionCodec'> & {
  readonly content: Uint8Array
}

/** Writes a Puffin file; the blobs come back with their place in it. */
export function writePuffin(
  blobs: readonly NewPuffinBlob[],
  properties: Readonly<Record<string, string>> = {},
): { content: Buffer; blobs: PuffinBlob[]; footerLength: number } {
  const parts: Uint8Array[] = [magic]
  let offset = magic.length
  const placed = blobs.map(({ content, ...blob }): PuffinBlob => {
    const at = offset
    parts.push(content)
    offset += content.length
    return { ...blob, offset: at, length: content.length }
  })
  const payload = Buffer.from(
    stringifyJson(compact({ blobs: placed.map(blobToJson), properties: isEmpty(properties) ? undefined : properties })),
  )
  const tail = Buffer.alloc(footerTail)
  tail.writeUInt32LE(payload.length, 0)
  magic.copy(tail, 8)
  const content = Buffer.concat([...parts, magic, payload, tail])
  return { content, blobs: placed, footerLength: magic.length + payload.length + footerTail }
}

function isEmpty(properties: Readonly<Record<string, string>>): boolean {
  return Object.keys(properties).length === 0
}

function blobToJson(blob: PuffinBlob): Json {
  return compact({
    type: blob.type,
    fields: blob.fields,
    'snapshot-id': blob.snapshotId,
    'sequence-number': blob.sequenceNumber,
    offset: blob.offset,
    length: blob.length,
    properties: blob.properties,
  })
}

/** How many bytes at the end of a Puffin file its footer has, by its last 12 bytes. */
export function puffinFooterLength(lastBytes: Uint8Array, what: string): number {
  const tail = viewOf(lastBytes).subarray(-footerTail)
  if (tail.length < footerTail || !tail.subarray(8).equals(magic)) {
    throw new IcebergError('puffin_invalid', `${what} is not a Puffin file, or was cut`)
  }
  return magic.length + tail.readUInt32LE(0) + footerTail
}

/** Reads the footer from the end of a Puffin file: the whole file, or as many last bytes as the footer has. */
export function readPuffinFooter(end: Uint8Array, what: string): PuffinFooter {
  const bytes = viewOf(end)
  const length = puffinFooterLength(bytes, what)
  const footer = bytes.subarray(-length)
  if (footer.length < length || !footer.subarray(0, 4).equals(magic)) {
    throw new IcebergError('puffin_invalid', `${what} has a damaged footer`)
  }
  if (((footer[length - 8] ?? 0) & compressedFooterFlag) !== 0) {
    throw new IcebergError('puffin_invalid', `${what} has a compressed footer, which is not supported`)
  }
  const json = parseJson(footer.toString('utf8', 4, length - footerTail), `the footer of ${what}`)
  const r = new ObjectReader(json, `the footer of ${what}`)
  return {
    blobs: r.array('blobs', blobFromJson),
    properties: isObject(json) ? (r.optionalStrings('properties') ?? {}) : {},
  }
}

function blobFromJson(json: Json, what: string): PuffinBlob {
  const r = new ObjectReader(json, what)
  return defined({
    type: r.string('type'),
    fields: r.array('fields', (id, where) => new ObjectReader({ id }, where).int('id')),
    snapshotId: r.long('snapshot-id'),
    sequenceNumber: r.long('sequence-number'),
    offset: r.int('offset'),
    length: r.int('length'),
    compressionCodec: r.optionalString('compression-codec'),
    properties: r.optionalStrings('properties'),
  })
}

/** The content of a blob, decompressed. `file` is the whole file. */
export function readPuffinBlob(file: Uint8Array, blob: PuffinBlob, what: string): Buffer {
  const bytes = viewOf(file).subarray(blob.offset, blob.offset + blob.length)
  if (bytes.length !== blob.length)
    throw new IcebergError('puffin_invalid', `${what} ends inside the blob ${blob.type}`)
  switch (blob.compressionCodec) {
    case undefined:
      return bytes
    case 'zstd':
      return viewOf(decompressZstd(bytes))
    default:
      throw new IcebergError('puffin_invalid', `${what}: the compression ${blob.compressionCodec} is not supported`)
  }
}
