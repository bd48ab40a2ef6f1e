import { IcebergError } from '../errors.ts'

const uuidText = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/

/** The 16 big-endian bytes of a uuid's text. */
export function uuidToBytes(uuid: string): Uint8Array {
  const text = uuid.toLowerCase()
  if (!uuidText.test(text)) throw new IcebergError('value_invalid', `"${uuid}" is not a uuid`)
  return Buffer.from(text.replaceAll('-', ''), 'hex')
}

export function uuidFromBytes(bytes: Uint8Array): string {
  if (bytes.length !== 16) throw new IcebergError('value_invalid', `A uuid has 16 bytes, not ${bytes.length}`)
  const hex = viewOf(bytes).toString('hex')
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`
}

/** Two's complement, big-endian, in as few bytes as hold the value (at least one), or sign-extended to `length`. */
export function integerToBytes(value: bigint, length?: number): Uint8Array {
  const bytes: number[] = []
  let rest = value
  do {
    bytes.push(Number(rest & 0xffn))
    rest >>= 8n
  } while (!fits(rest, bytes[bytes.length - 1] ?? 0))
  if (length !== undefined) {
    if (bytes.length > length) throw new IcebergError('value_invalid', `${value} does not fit in ${length} bytes`)
    while (bytes.length < length) bytes.push(value < 0n ? 0xff : 0)
  }
  return Uint8Array.from(bytes.reverse())
}

function fits(rest: bigint, last: number): boolean {
  return (rest === 0n && last < 0x80) || (rest === -1n && last >= 0x80)
}

/** The integer of two's complement, big-endian bytes. */
export function integerFromBytes(bytes: Uint8Array): bigint {
  if (bytes.length === 0) return 0n
  return BigInt.asIntN(bytes.length * 8, BigInt(`0x${viewOf(bytes).toString('hex')}`))
}

/** The same bytes as a Buffer, without a copy. */
export function viewOf(bytes: Uint8Array): Buffer {
  return Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
}
