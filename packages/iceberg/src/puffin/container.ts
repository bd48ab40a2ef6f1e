/** A set of 16-bit numbers: a sorted list while it is small, a bitmap of 65,536 bits when it has grown. */
export type Container = ListContainer | BitmapContainer

/** More members than this and a bitmap is the smaller form; the format fixes the limit. */
export const maxListSize = 4096
const bitmapBytes = 8192

export interface ListContainer {
  readonly kind: 'list'
  values: Uint16Array
  size: number
}

export interface BitmapContainer {
  readonly kind: 'bitmap'
  readonly bits: Uint8Array
  size: number
}

export function emptyContainer(): ListContainer {
  return { kind: 'list', values: new Uint16Array(4), size: 0 }
}

export function containerHas(container: Container, value: number): boolean {
  if (container.kind === 'bitmap') return ((container.bits[value >>> 3] ?? 0) & (1 << (value & 7))) !== 0
  const index = indexOf(container, value)
  return index < container.size && container.values[index] === value
}

/** Where the value is in the list, or where it would be put. */
function indexOf(list: ListContainer, value: number): number {
  let low = 0
  let high = list.size
  // Positions mostly come in order.
  if (high > 0 && (list.values[high - 1] ?? 0) < value) return high
  while (low < high) {
    const middle = (low + high) >>> 1
    if ((list.values[middle] ?? 0) < value) low = middle + 1
    else high = middle
  }
  return low
}

/** Adds a value; the container returned is to be used instead of the given one. */
export function containerAdd(container: Container, value: number): Container {
  if (container.kind === 'bitmap') {
    if (!containerHas(container, value)) {
      container.bits[value >>> 3] = (container.bits[value >>> 3] ?? 0) | (1 << (value & 7))
      container.size += 1
    }
    return container
  }
  const index = indexOf(container, value)
  if (index < container.size && container.values[index] === value) return container
  if (container.size >= maxListSize) return containerAdd(toBitmap(container), value)
  if (container.size === container.values.length) {
    const larger = new Uint16Array(Math.min(maxListSize, container.size * 2))
    larger.set(container.values)
    container.values = larger
  }
  container.values.copyWithin(index + 1, index, container.size)
  container.values[index] = value
  container.size += 1
  return container
}

function toBitmap(list: ListContainer): BitmapContainer {
  const bits = new Uint8Array(bitmapBytes)
  for (let i = 0; i < list.size; i += 1) {
    const value = list.values[i] ?? 0
    bits[value >>> 3] = (bits[value >>> 3] ?? 0) | (1 << (value & 7))
  }
  return { kind: 'bitmap', bits, size: list.size }
}

/** The members in ascending order. */
export function containerValues(container: Container): Uint16Array {
  if (container.kind === 'list') return container.values.subarray(0, container.size)
  const values = new Uint16Array(container.size)
  let count = 0
  for (let byte = 0; byte < bitmapBytes; byte += 1) {
    const bits = container.bits[byte] ?? 0
    if (bits === 0) continue
    for (let bit = 0; bit < 8; bit += 1) if ((bits & (1 << bit)) !== 0) values[count++] = byte * 8 + bit
  }
  return values
}

/** The members as runs, flat: first and last of the first run, first and last of the second, … */
export function containerRuns(container: Container): number[] {
  const runs: number[] = []
  let last = -2
  for (const value of containerValues(container)) {
    if (value === last + 1) runs[runs.length - 1] = value
    else runs.push(value, value)
    last = value
  }
  return runs
}

/** A container of the smallest form for members that are given in ascending order. */
export function containerOf(values: Uint16Array): Container {
  const list: ListContainer = { kind: 'list', values, size: values.length }
  return values.length > maxListSize ? toBitmap(list) : list
}
