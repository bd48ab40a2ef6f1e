import { IcebergError } from '../errors.ts'

/** Decompresses one raw Snappy block. */
export function decompressSnappy(input: Buffer): Buffer {
  let at = 0
  const byte = (): number => {
    const value = input[at++]
    if (value === undefined) throw damaged()
    return value
  }
  let length = 0
  for (let shift = 0; ; shift += 7) {
    const part = byte()
    length += (part & 0x7f) * 2 ** shift
    if (part < 0x80) break
    if (shift > 28) throw damaged()
  }
  const output = Buffer.alloc(length)
  let end = 0
  while (at < input.length) {
    const tag = byte()
    const kind = tag & 3
    if (kind === 0) {
      const size = literalSize(tag >>> 2, byte)
      if (at + size > input.length || end + size > length) throw damaged()
      input.copy(output, end, at, at + size)
      at += size
      end += size
      continue
    }
    const size = kind === 1 ? ((tag >>> 2) & 7) + 4 : (tag >>> 2) + 1
    let offset = kind === 1 ? ((tag >>> 5) << 8) | byte() : byte() | (byte() << 8)
    if (kind === 3) offset += (byte() | (byte() << 8)) * 65536
    if (offset === 0 || offset > end || end + size > length) throw damaged()
    // Byte by byte: source and target may overlap, and then repeat.
    for (let i = 0; i < size; i += 1) output[end + i] = output[end + i - offset] ?? 0
    end += size
  }
  if (end !== length) throw damaged()
  return output
}

function literalSize(tag: number, byte: () => number): number {
  if (tag < 60) return tag + 1
  let size = 0
  for (let i = 0; i < tag - 59; i += 1) size += byte() * 256 ** i
  return size + 1
}

function damaged(): IcebergError {
  return new IcebergError('avro_invalid', 'A block compressed with Snappy is damaged')
}
