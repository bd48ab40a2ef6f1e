import { IcebergError } from '../errors.ts'
import { AvroReader } from './avro-reader.ts'
import type { AvroSchema } from './avro-schema.ts'
import { compileOptional, compileSkip, type Read } from './compile.ts'

type ReadPair<V> = (reader: AvroReader, into: Map<number, V>) => void

/**
 * A map by column id that is decoded when it is first looked into. Until then it is a piece of the block it was read
 * from, and keeps that in memory.
 */
export class LazyMap<V> implements ReadonlyMap<number, V> {
  readonly #block: Buffer
  readonly #start: number
  readonly #end: number
  readonly #readPair: ReadPair<V>
  #decoded: Map<number, V> | undefined

  /** Whether the encoding is that of an int key and a long or bytes, which can be written again as it is. */
  readonly canonical: boolean

  constructor(block: Buffer, start: number, end: number, readPair: ReadPair<V>, canonical: boolean) {
    this.#block = block
    this.#start = start
    this.#end = end
    this.#readPair = readPair
    this.canonical = canonical
  }

  get encoded(): Buffer {
    return this.#block.subarray(this.#start, this.#end)
  }

  get size(): number {
    return this.#map().size
  }

  get(key: number): V | undefined {
    return this.#map().get(key)
  }

  has(key: number): boolean {
    return this.#map().has(key)
  }

  forEach(callback: (value: V, key: number, map: ReadonlyMap<number, V>) => void): void {
    this.#map().forEach((value, key) => callback(value, key, this))
  }

  entries(): MapIterator<[number, V]> {
    return this.#map().entries()
  }

  keys(): MapIterator<number> {
    return this.#map().keys()
  }

  values(): MapIterator<V> {
    return this.#map().values()
  }

  [Symbol.iterator](): MapIterator<[number, V]> {
    return this.#map().entries()
  }

  #map(): Map<number, V> {
    if (this.#decoded !== undefined) return this.#decoded
    const map = new Map<number, V>()
    const reader = new AvroReader(this.#block, this.#start)
    for (let count = reader.number(); count !== 0; count = reader.number()) {
      if (count < 0) reader.skipNumber()
      for (let i = Math.abs(count); i > 0; i -= 1) this.#readPair(reader, map)
    }
    this.#decoded = map
    return map
  }
}

/** Reads an array of key and value records, in which Iceberg keeps maps with integer keys. */
export function compileLazyMap<V>(schema: AvroSchema, compileValue: (schema: AvroSchema) => Read<V>): Read<LazyMap<V>> {
  const record = schema.kind === 'array' ? schema.items : undefined
  const [key, value, ...others] = record?.kind === 'record' ? record.fields : []
  if (key?.schema.kind !== 'int' || value === undefined || others.length > 0) {
    throw new IcebergError('avro_invalid', 'A map of column ids is not an array of an int key and a value')
  }
  const readValue = compileOptional(value.schema, compileValue)
  const readPair: ReadPair<V> = (reader, into) => {
    const column = reader.number()
    const found = readValue(reader)
    if (found !== undefined) into.set(column, found)
  }
  const skip = compileSkipPairs(value.schema, schema)
  const canonical = value.schema.kind === 'long' || value.schema.kind === 'bytes'
  return (r) => {
    const start = r.position
    skip(r)
    return new LazyMap(r.buffer, start, r.position, readPair, canonical)
  }
}

/** The generic skip, and a loop without calls for the two forms that manifests are full of. */
function compileSkipPairs(value: AvroSchema, array: AvroSchema): Read<void> {
  if (value.kind === 'long') return (r) => skipPairs(r, false)
  if (value.kind === 'bytes') return (r) => skipPairs(r, true)
  return compileSkip(array)
}

// The innermost loop of reading a manifest: it works on the buffer itself. Beyond its end there are only undefined, which
// end every number, so that one check at the end of each run of pairs is enough.
function skipPairs(r: AvroReader, sized: boolean): void {
  const { buffer } = r
  const end = buffer.length
  for (let count = r.number(); count !== 0; count = r.number()) {
    if (count < 0) {
      r.skip(r.number())
      continue
    }
    let at = r.position
    for (let i = 0; i < count && at < end; i += 1) {
      while ((buffer[at++] ?? 0) >= 0x80);
      if (sized) {
        const length = buffer[at] ?? 0
        if (length < 0x80) {
          at += 1 + (length >>> 1)
        } else {
          r.position = at
          r.skip(r.number())
          at = r.position
        }
      } else {
        while ((buffer[at++] ?? 0) >= 0x80);
      }
    }
    // Fails when the pairs went beyond the end.
    r.position = at
    r.skip(0)
  }
}

/** Passes over such a map as quickly as it can be. */
export function compileSkipLazyMap(schema: AvroSchema): Read<void> {
  const record = schema.kind === 'array' ? schema.items : undefined
  const value = record?.kind === 'record' && record.fields.length === 2 ? record.fields[1] : undefined
  const key = record?.kind === 'record' ? record.fields[0] : undefined
  return value !== undefined && key?.schema.kind === 'int'
    ? compileSkipPairs(value.schema, schema)
    : compileSkip(schema)
}
