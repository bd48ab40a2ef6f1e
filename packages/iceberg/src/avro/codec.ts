import { deflateRawSync, inflateRawSync } from 'node:zlib'
import { decompress as decompressZstd } from 'fzstd'
import { IcebergError } from '../errors.ts'
import { viewOf } from '../values/bytes.ts'
import { decompressSnappy } from './snappy.ts'

/** How blocks are compressed in the files this package writes. */
export type AvroCodec = 'deflate' | 'null'

/** The decompression of an Avro codec; refuses those it does not know. */
export function decompressor(codec: string, what: string): (block: Buffer) => Buffer {
  switch (codec) {
    case 'null':
      return (block) => block
    case 'deflate':
      return inflater()
    case 'snappy':
      // A checksum of four bytes follows each block.
      return (block) => decompressSnappy(block.subarray(0, -4))
    case 'zstandard':
      return (block) => viewOf(decompressZstd(block))
    default:
      throw new IcebergError('avro_invalid', `${what} is compressed with "${codec}", which is not supported`)
  }
}

/** Blocks of a file are about as large as each other: the right size is allocated at once. */
function inflater(): (block: Buffer) => Buffer {
  let chunkSize = 66_000
  return (block) => {
    const data = inflateRawSync(block, { chunkSize })
    chunkSize = Math.max(64, Math.ceil(data.length * 1.05))
    return data
  }
}

export function compress(codec: AvroCodec, block: Buffer): Buffer {
  return codec === 'deflate' ? deflateRawSync(block) : block
}
