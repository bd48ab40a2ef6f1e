import { IcebergError } from '../errors.ts'
import { AvroReader } from './avro-reader.ts'
import type { AvroSchema } from './avro-schema.ts'
import { branchOf, compileNumber, compileOptional, compileSkip, type Read } from './compile.ts'

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
  if (schema.kind !== 'array') throw notAMap()
  const readPair = compilePair(schema.items, compileValue)
  const skip = compileSkipLazyMap(schema)
  const canonical = plainValueOf(schema) !== undefined
  return (r) => {
    const start = r.position
    skip(r)
    return new LazyMap(r.buffer, start, r.position, readPair, canonical)
  }
}

/** Some writers let the record, the key and the value be null: such a pair says nothing. */
function compilePair<V>(items: AvroSchema, compileValue: (schema: AvroSchema) => Read<V>): ReadPair<V> {
  if (items.kind === 'union') {
    const branches = items.branches.map((branch) =>
      branch.kind === 'null' ? () => undefined : compilePair(branch, compileValue),
    )
    return (reader, into) => branchOf(branches, reader.number())(reader, into)
  }
  const [key, value, ...others] = items.kind === 'record' ? items.fields : []
  if (key === undefined || value === undefined || others.length > 0) throw notAMap()
  const readKey = compileOptional(key.schema, compileNumber)
  const readValue = compileOptional(value.schema, compileValue)
  return (reader, into) => {
    const column = readKey(reader)
    const found = readValue(reader)
    if (column !== undefined && found !== undefined) into.set(column, found)
  }
}

function notAMap(): IcebergError {
  return new IcebergError('avro_invalid', 'A map of column ids is not an array of an int key and a value')
}

/** The kind of the values, if the pairs are an int and a long or bytes, as the format has them. */
function plainValueOf(schema: AvroSchema): 'long' | 'bytes' | undefined {
  const record = schema.kind === 'array' ? schema.items : undefined
  const [key, value, ...others] = record?.kind === 'record' ? record.fields : []
  if (key?.schema.kind !== 'int' || others.length > 0) return undefined
  return value?.schema.kind === 'long' || value?.schema.kind === 'bytes' ? value.schema.kind : undefined
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

/** Passes over such a map: a loop without calls for the two forms that manifests are full of, else the generic skip. */
export function compileSkipLazyMap(schema: AvroSchema): Read<void> {
  const value = plainValueOf(schema)
  return value === undefined ? compileSkip(schema) : (r) => skipPairs(r, value === 'bytes')
}
