import { IcebergError } from '../errors.ts'
import { type Container, containerOf, containerRuns, containerValues, maxListSize } from './container.ts'

// The portable serialisation of 32-bit Roaring bitmaps:
//   without runs: cookie 12346, number of containers; with runs: cookie 12347 | (number - 1) << 16, a bit for each
//   container that says whether it is runs. Then for each: key, cardinality - 1 (16 bits each). Then, unless there are
//   runs and fewer than 4 containers, the offset of each from the start. Then the containers.
const cookieWithoutRuns = 12346
const cookieWithRuns = 12347
const minContainersForOffsets = 4
const bitmapBytes = 8192

/** Writes containers with 16-bit keys, given in ascending order. */
export function writeRoaring(containers: readonly (readonly [key: number, container: Container])[]): Buffer {
  const bodies = containers.map(([, container]) => encodeContainer(container))
  const count = containers.length
  const hasRuns = bodies.some((body) => body.isRuns)
  const flagBytes = hasRuns ? Math.ceil(count / 8) : 0
  const hasOffsets = !hasRuns || count >= minContainersForOffsets
  const headerBytes = (hasRuns ? 4 + flagBytes : 8) + count * 4 + (hasOffsets ? count * 4 : 0)
  const header = Buffer.alloc(headerBytes)
  let at = 0
  if (hasRuns) {
    at = header.writeUInt32LE((cookieWithRuns | ((count - 1) << 16)) >>> 0, at)
    for (const [index, body] of bodies.entries()) {
      if (body.isRuns) header[at + (index >>> 3)] = (header[at + (index >>> 3)] ?? 0) | (1 << (index & 7))
    }
    at += flagBytes
  } else {
    at = header.writeUInt32LE(cookieWithoutRuns, at)
    at = header.writeUInt32LE(count, at)
  }
  for (const [key, container] of containers) {
    at = header.writeUInt16LE(key, at)
    at = header.writeUInt16LE(container.size - 1, at)
  }
  let offset = headerBytes
  for (const { bytes } of bodies) {
    if (hasOffsets) at = header.writeUInt32LE(offset, at)
    offset += bytes.length
  }
  return Buffer.concat([header, ...bodies.map((body) => body.bytes)])
}

/** The smallest of the three forms. */
function encodeContainer(container: Container): { bytes: Buffer; isRuns: boolean } {
  const runs = containerRuns(container)
  const plainBytes = container.size > maxListSize ? bitmapBytes : container.size * 2
  if (2 + runs.length * 2 < plainBytes) {
    const bytes = Buffer.alloc(2 + runs.length * 2)
    let at = bytes.writeUInt16LE(runs.length / 2, 0)
    for (let i = 0; i < runs.length; i += 2) {
      const first = runs[i] ?? 0
      at = bytes.writeUInt16LE(first, at)
      at = bytes.writeUInt16LE((runs[i + 1] ?? 0) - first, at)
    }
    return { bytes, isRuns: true }
  }
  const bytes = Buffer.alloc(plainBytes)
  if (container.kind === 'bitmap' && container.size > maxListSize) bytes.set(container.bits)
  else for (const [index, value] of containerValues(container).entries()) bytes.writeUInt16LE(value, index * 2)
  return { bytes, isRuns: false }
}

/** Reads the bitmap that begins at `start`; `end` is where it ends. */
export function readRoaring(bytes: Buffer, start: number): { containers: [number, Container][]; end: number } {
  try {
    return readContainers(bytes, start)
  } catch (error) {
    if (!(error instanceof RangeError)) throw error
    throw new IcebergError('puffin_invalid', 'A bitmap ends too early: it is damaged or was cut', { cause: error })
  }
}

function readContainers(bytes: Buffer, start: number): { containers: [number, Container][]; end: number } {
  const { count, flags, at: headerEnd } = readCookie(bytes, start)
  const hasOffsets = flags === undefined || count >= minContainersForOffsets
  let at = headerEnd + count * 4 + (hasOffsets ? count * 4 : 0)
  const containers: [number, Container][] = []
  for (let i = 0; i < count; i += 1) {
    const key = bytes.readUInt16LE(headerEnd + i * 4)
    const size = bytes.readUInt16LE(headerEnd + i * 4 + 2) + 1
    const isRuns = flags !== undefined && ((flags[i >>> 3] ?? 0) & (1 << (i & 7))) !== 0
    const { container, end } = isRuns ? readRuns(bytes, at) : readPlain(bytes, at, size)
    if (container.size !== size) {
      throw new IcebergError('puffin_invalid', `A bitmap is damaged: ${container.size} members where ${size} are said`)
    }
    containers.push([key, container])
    at = end
  }
  return { containers, end: at }
}

function readCookie(bytes: Buffer, start: number): { count: number; flags: Buffer | undefined; at: number } {
  const cookie = bytes.readUInt32LE(start)
  if ((cookie & 0xffff) === cookieWithRuns) {
    const count = (cookie >>> 16) + 1
    const at = start + 4 + Math.ceil(count / 8)
    return { count, flags: bytes.subarray(start + 4, at), at }
  }
  if (cookie !== cookieWithoutRuns) {
    throw new IcebergError('puffin_invalid', `A bitmap begins with ${cookie}: it is not a Roaring bitmap`)
  }
  const count = bytes.readUInt32LE(start + 4)
  if (count > 65536) throw new IcebergError('puffin_invalid', `A bitmap cannot have ${count} containers`)
  return { count, flags: undefined, at: start + 8 }
}

function readRuns(bytes: Buffer, start: number): { container: Container; end: number } {
  const count = bytes.readUInt16LE(start)
  const end = start + 2 + count * 4
  const values: number[] = []
  for (let at = start + 2; at < end; at += 4) {
    const first = bytes.readUInt16LE(at)
    const last = first + bytes.readUInt16LE(at + 2)
    for (let value = first; value <= last; value += 1) values.push(value)
  }
  return { container: containerOf(Uint16Array.from(values)), end }
}

function readPlain(bytes: Buffer, start: number, size: number): { container: Container; end: number } {
  if (size > maxListSize) {
    const end = start + bitmapBytes
    if (end > bytes.length) throw new RangeError('beyond the end')
    const bits = Uint8Array.from(bytes.subarray(start, end))
    return { container: { kind: 'bitmap', bits, size: countBits(bits) }, end }
  }
  const values = new Uint16Array(size)
  for (let i = 0; i < size; i += 1) values[i] = bytes.readUInt16LE(start + i * 2)
  return { container: { kind: 'list', values, size }, end: start + size * 2 }
}

function countBits(bits: Uint8Array): number {
  let count = 0
  for (const byte of bits) for (let rest = byte; rest !== 0; rest &= rest - 1) count += 1
  return count
}
