/** 32-bit Murmur3, x86 variant, seed 0, as a signed integer. */
export function murmur3(bytes: Uint8Array): number {
  const blocks = bytes.length & ~3
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  let h = 0
  for (let i = 0; i < blocks; i += 4) {
    h ^= scramble(view.getInt32(i, true))
    h = (h << 13) | (h >>> 19)
    h = (Math.imul(h, 5) + 0xe6546b64) | 0
  }
  let tail = 0
  for (let i = bytes.length - 1; i >= blocks; i -= 1) tail = (tail << 8) | view.getUint8(i)
  if (blocks < bytes.length) h ^= scramble(tail)
  h ^= bytes.length
  h = Math.imul(h ^ (h >>> 16), 0x85ebca6b)
  h = Math.imul(h ^ (h >>> 13), 0xc2b2ae35)
  return h ^ (h >>> 16)
}

function scramble(block: number): number {
  const k = Math.imul(block, 0xcc9e2d51)
  return Math.imul((k << 15) | (k >>> 17), 0x1b873593)
}
