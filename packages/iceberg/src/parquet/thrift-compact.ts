import { IcebergError } from '../errors.ts'
import { viewOf } from '../values/bytes.ts'

// Thrift's compact protocol, in which Parquet writes its footers, page headers and page indexes. A struct is kept as
// its fields, and a field as the bytes of its value: whatever is not changed is written again byte for byte, also
// fields that this package has never heard of.

const kinds = {
  true: 1,
  false: 2,
  byte: 3,
  i16: 4,
  i32: 5,
  i64: 6,
  double: 7,
  binary: 8,
  list: 9,
  set: 10,
  map: 11,
  struct: 12,
} as const

/** Nothing in Parquet is nested nearly as deep; a damaged file must not exhaust the stack. */
const maxDepth = 64

/** One field of a struct: its number, its kind on the wire, and the bytes of its value. */
export interface ThriftField {
  readonly id: number
  readonly kind: number
  readonly value: Buffer
}

/** A struct that can be changed field by field and written again. It never changes itself. */
export class ThriftStruct {
  readonly fields: readonly ThriftField[]

  constructor(fields: readonly ThriftField[]) {
    this.fields = fields
  }

  /** The struct at the beginning of these bytes. */
  static parse(bytes: Uint8Array): ThriftStruct {
    return new CompactReader(viewOf(bytes)).struct()
  }

  /** The same, and how many bytes it takes. */
  static parsePrefix(bytes: Uint8Array): { struct: ThriftStruct; length: number } {
    const reader = new CompactReader(viewOf(bytes))
    return { struct: reader.struct(), length: reader.at }
  }

  has(id: number): boolean {
    return this.#field(id) !== undefined
  }

  /** The bytes of a value, as they are on the wire. */
  value(id: number): Buffer | undefined {
    return this.#field(id)?.value
  }

  integer(id: number): number | undefined {
    const field = this.#field(id)
    if (field === undefined) return undefined
    if (field.kind < kinds.i16 || field.kind > kinds.i64) throw damaged(`field ${id} is not an integer`)
    return new CompactReader(field.value).zigzag()
  }

  text(id: number): string | undefined {
    const field = this.#field(id)
    if (field === undefined) return undefined
    if (field.kind !== kinds.binary) throw damaged(`field ${id} is not a text`)
    return new CompactReader(field.value).binary().toString('utf8')
  }

  struct(id: number): ThriftStruct | undefined {
    const field = this.#field(id)
    if (field === undefined) return undefined
    if (field.kind !== kinds.struct) throw damaged(`field ${id} is not a struct`)
    return new CompactReader(field.value).struct()
  }

  structs(id: number): ThriftStruct[] | undefined {
    const field = this.#field(id)
    if (field === undefined) return undefined
    if (field.kind !== kinds.list) throw damaged(`field ${id} is not a list`)
    const reader = new CompactReader(field.value)
    const { size, kind } = reader.listHeader()
    if (size > 0 && kind !== kinds.struct) throw damaged(`field ${id} is not a list of structs`)
    return Array.from({ length: size }, () => reader.struct())
  }

  /** With these fields in the place of those of the same number; new ones stand in the order of their numbers. */
  with(...changed: readonly ThriftField[]): ThriftStruct {
    const fields = [...this.fields]
    for (const field of changed) {
      const at = fields.findIndex(({ id }) => id === field.id)
      if (at !== -1) fields[at] = field
      else {
        const next = fields.findIndex(({ id }) => id > field.id)
        fields.splice(next === -1 ? fields.length : next, 0, field)
      }
    }
    return new ThriftStruct(fields)
  }

  without(...ids: readonly number[]): ThriftStruct {
    return new ThriftStruct(this.fields.filter(({ id }) => !ids.includes(id)))
  }

  encode(): Buffer {
    const parts: Buffer[] = []
    let last = 0
    for (const { id, kind, value } of this.fields) {
      const delta = id - last
      if (delta > 0 && delta <= 15) parts.push(Buffer.of((delta << 4) | kind))
      else parts.push(Buffer.of(kind), zigzagBytes(id))
      parts.push(value)
      last = id
    }
    parts.push(Buffer.of(0))
    return Buffer.concat(parts)
  }

  #field(id: number): ThriftField | undefined {
    return this.fields.find((field) => field.id === id)
  }
}

export function i16(id: number, value: number): ThriftField {
  return { id, kind: kinds.i16, value: zigzagBytes(value) }
}

export function i32(id: number, value: number): ThriftField {
  return { id, kind: kinds.i32, value: zigzagBytes(value) }
}

export function i64(id: number, value: number | bigint): ThriftField {
  return { id, kind: kinds.i64, value: zigzagBytes(value) }
}

export function binary(id: number, bytes: Uint8Array): ThriftField {
  return { id, kind: kinds.binary, value: Buffer.concat([varintBytes(bytes.length), bytes]) }
}

export function structField(id: number, struct: ThriftStruct): ThriftField {
  return { id, kind: kinds.struct, value: struct.encode() }
}

export function structList(id: number, structs: readonly ThriftStruct[]): ThriftField {
  return list(
    id,
    kinds.struct,
    structs.map((struct) => struct.encode()),
  )
}

export function i32List(id: number, values: readonly number[]): ThriftField {
  return list(id, kinds.i32, values.map(zigzagBytes))
}

export function i64List(id: number, values: readonly number[]): ThriftField {
  return list(id, kinds.i64, values.map(zigzagBytes))
}

/** In a list each takes a byte. */
export function booleanList(id: number, values: readonly boolean[]): ThriftField {
  return list(
    id,
    kinds.true,
    values.map((value) => Buffer.of(value ? kinds.true : kinds.false)),
  )
}

export function binaryList(id: number, values: readonly Uint8Array[]): ThriftField {
  const items = values.flatMap((value) => [varintBytes(value.length), Buffer.from(value)])
  return { id, kind: kinds.list, value: Buffer.concat([listHeader(kinds.binary, values.length), ...items]) }
}

function list(id: number, kind: number, items: readonly Buffer[]): ThriftField {
  return { id, kind: kinds.list, value: Buffer.concat([listHeader(kind, items.length), ...items]) }
}

function listHeader(kind: number, size: number): Buffer {
  return size < 15 ? Buffer.of((size << 4) | kind) : Buffer.concat([Buffer.of(0xf0 | kind), varintBytes(size)])
}

/** A number of up to 64 bits, small ones of either sign in few bytes. */
export function zigzagBytes(value: number | bigint): Buffer {
  if (typeof value === 'bigint') return varintBytes(BigInt.asUintN(64, (value << 1n) ^ (value >> 63n)))
  return varintBytes(value < 0 ? -2n * BigInt(value) - 1n : 2n * BigInt(value))
}

/** A number that is not negative, seven bits to a byte. */
export function varintBytes(value: number | bigint): Buffer {
  const bytes: number[] = []
  let rest = BigInt(value)
  while (rest >= 0x80n) {
    bytes.push(Number(rest & 0x7fn) | 0x80)
    rest >>= 7n
  }
  bytes.push(Number(rest))
  return Buffer.from(bytes)
}

class CompactReader {
  readonly #bytes: Buffer
  at = 0

  constructor(bytes: Buffer) {
    this.#bytes = bytes
  }

  struct(): ThriftStruct {
    const fields: ThriftField[] = []
    for (const { id, kind } of this.#fieldHeaders()) {
      const start = this.at
      this.#skip(kind, 1)
      fields.push({ id, kind, value: this.#bytes.subarray(start, this.at) })
    }
    return new ThriftStruct(fields)
  }

  listHeader(): { size: number; kind: number } {
    const header = this.#byte()
    const short = header >> 4
    const size = short === 15 ? this.#varint() : short
    if (size > this.#bytes.length - this.at) throw damaged('a list is longer than what holds it')
    return { size, kind: header & 0x0f }
  }

  zigzag(): number {
    const value = this.#varint()
    return value % 2 === 0 ? value / 2 : -(value + 1) / 2
  }

  binary(): Buffer {
    const length = this.#varint()
    const start = this.at
    this.#advance(length)
    return this.#bytes.subarray(start, this.at)
  }

  /** Its caller passes over each value before it asks for the next field. */
  *#fieldHeaders(): Generator<{ id: number; kind: number }> {
    let id = 0
    for (;;) {
      const header = this.#byte()
      if (header === 0) return
      const delta = header >> 4
      id = delta === 0 ? this.zigzag() : id + delta
      yield { id, kind: header & 0x0f }
    }
  }

  #skip(kind: number, depth: number): void {
    if (depth > maxDepth) throw damaged(`structs are nested more than ${maxDepth} deep`)
    switch (kind) {
      case kinds.true: // the value is in the header of the field
      case kinds.false:
        return
      case kinds.byte:
        return this.#advance(1)
      case kinds.i16:
      case kinds.i32:
      case kinds.i64:
        while (this.#byte() >= 0x80);
        return
      case kinds.double:
        return this.#advance(8)
      case kinds.binary:
        return this.#advance(this.#varint())
      case kinds.list:
      case kinds.set: {
        const { size, kind: of } = this.listHeader()
        for (let nth = 0; nth < size; nth += 1) this.#skipItem(of, depth)
        return
      }
      case kinds.map: {
        const size = this.#varint()
        const of = size === 0 ? 0 : this.#byte()
        for (let nth = 0; nth < size; nth += 1) {
          this.#skipItem(of >> 4, depth)
          this.#skipItem(of & 0x0f, depth)
        }
        return
      }
      case kinds.struct:
        for (const field of this.#fieldHeaders()) this.#skip(field.kind, depth + 1)
        return
      default:
        throw damaged(`a value is of the unknown kind ${kind}`)
    }
  }

  /** Booleans that are not in the header of a field take a byte each. */
  #skipItem(kind: number, depth: number): void {
    this.#skip(kind === kinds.true || kind === kinds.false ? kinds.byte : kind, depth + 1)
  }

  #advance(length: number): void {
    if (length > this.#bytes.length - this.at) throw damaged('it ends in the middle of a value')
    this.at += length
  }

  #byte(): number {
    const value = this.#bytes[this.at]
    if (value === undefined) throw damaged('it ends in the middle of a value')
    this.at += 1
    return value
  }

  #varint(): number {
    let value = 0
    let scale = 1
    for (;;) {
      const byte = this.#byte()
      value += (byte & 0x7f) * scale
      if (byte < 0x80) break
      scale *= 128
    }
    // Sizes, places and counts: none is near 2^53.
    if (value > Number.MAX_SAFE_INTEGER) throw damaged(`the number ${value} is too large`)
    return value
  }
}

function damaged(why: string): IcebergError {
  return new IcebergError('parquet_invalid', `The Thrift metadata of a Parquet file is damaged: ${why}.`)
}
