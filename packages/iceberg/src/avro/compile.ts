import { IcebergError } from '../errors.ts'
import type { AvroReader } from './avro-reader.ts'
import type { AvroSchema } from './avro-schema.ts'

/** Reads one value of the writer's schema it was compiled for. */
export type Read<T> = (reader: AvroReader) => T

/** Passes over one value. */
export function compileSkip(schema: AvroSchema): Read<void> {
  switch (schema.kind) {
    case 'null':
      return () => undefined
    case 'boolean':
      return (r) => r.skip(1)
    case 'int':
    case 'long':
    case 'enum':
      return (r) => r.skipNumber()
    case 'float':
      return (r) => r.skip(4)
    case 'double':
      return (r) => r.skip(8)
    case 'bytes':
    case 'string':
      return (r) => r.skip(r.number())
    case 'fixed':
      return (r) => r.skip(schema.size)
    case 'record': {
      // Compiled at first use: a record may hold itself.
      let steps: Read<void>[] | undefined
      return (r) => {
        steps ??= schema.fields.map((field) => compileSkip(field.schema))
        for (const step of steps) step(r)
      }
    }
    case 'array':
      return compileSkipItems(compileSkip(schema.items))
    case 'map': {
      const skipValue = compileSkip(schema.values)
      return compileSkipItems((r) => {
        r.skip(r.number())
        skipValue(r)
      })
    }
    case 'union': {
      const branches = schema.branches.map(compileSkip)
      return (r) => branchOf(branches, r.number())(r)
    }
  }
}

function compileSkipItems(skipItem: Read<void>): Read<void> {
  return (r) => {
    for (let count = r.number(); count !== 0; count = r.number()) {
      // A negative count is followed by the size of the items in bytes.
      if (count < 0) r.skip(r.number())
      else for (let i = 0; i < count; i += 1) skipItem(r)
    }
  }
}

export function branchOf<T>(branches: readonly T[], index: number): T {
  const branch = branches[index]
  if (branch === undefined) throw new IcebergError('avro_invalid', `A union has no branch ${index}`)
  return branch
}

/** Reads a value that may be null, as undefined. `compile` makes the reader of what is not null. */
export function compileOptional<T>(schema: AvroSchema, compile: (schema: AvroSchema) => Read<T>): Read<T | undefined> {
  if (schema.kind !== 'union') return schema.kind === 'null' ? () => undefined : compile(schema)
  const branches = schema.branches.map((branch) => (branch.kind === 'null' ? undefined : compile(branch)))
  const [first, second] = branches
  if (branches.length === 2 && first === undefined && second !== undefined) {
    return (r) => (r.number() === 0 ? undefined : second(r))
  }
  return (r) => {
    const index = r.number()
    if (index < 0 || index >= branches.length) throw new IcebergError('avro_invalid', `A union has no branch ${index}`)
    return branches[index]?.(r)
  }
}

/** Reads a value that must be there, though the writer's schema may allow it to be null. */
export function compileRequired<T>(
  schema: AvroSchema,
  compile: (schema: AvroSchema) => Read<T>,
  what: string,
): Read<T> {
  if (schema.kind !== 'union') return compile(schema)
  const read = compileOptional(schema, compile)
  return (r) => {
    const value = read(r)
    if (value === undefined) throw new IcebergError('avro_invalid', `${what} is null, and must not be`)
    return value
  }
}

export function compileNumber(schema: AvroSchema): Read<number> {
  if (schema.kind === 'int' || schema.kind === 'long') return (r) => r.number()
  throw unexpected(schema, 'a number')
}

/** Reads longs as bigints. Neighbouring entries mostly have the same value, which is then made once. */
export function compileBigint(schema: AvroSchema): Read<bigint> {
  if (schema.kind !== 'int' && schema.kind !== 'long') throw unexpected(schema, 'a number')
  let last = Buffer.alloc(0)
  let value = 0n
  return (r) => {
    const start = r.position
    const length = last.length
    let same = 0
    while (same < length && r.buffer[start + same] === last[same]) same += 1
    if (same === length && length > 0) {
      r.position = start + length
      return value
    }
    value = r.bigint()
    last = Buffer.from(r.buffer.subarray(start, r.position))
    return value
  }
}

export function compileString(schema: AvroSchema): Read<string> {
  if (schema.kind === 'string' || schema.kind === 'bytes') return (r) => r.string()
  throw unexpected(schema, 'a string')
}

/** Reads strings of which neighbouring entries mostly have the same: it is then made once. */
export function compileRepeatedString(schema: AvroSchema, change: (text: string) => string): Read<string> {
  const read = compileString(schema)
  let last = Buffer.alloc(0)
  let value = ''
  return (r) => {
    const start = r.position
    const length = last.length
    let same = 0
    while (same < length && r.buffer[start + same] === last[same]) same += 1
    if (same === length && length > 0) {
      r.position = start + length
      return value
    }
    value = change(read(r))
    last = Buffer.from(r.buffer.subarray(start, r.position))
    return value
  }
}

export function compileBytes(schema: AvroSchema): Read<Buffer> {
  if (schema.kind === 'bytes' || schema.kind === 'string') return (r) => r.bytes()
  if (schema.kind === 'fixed') return (r) => r.fixed(schema.size)
  throw unexpected(schema, 'bytes')
}

export function compileBoolean(schema: AvroSchema): Read<boolean> {
  if (schema.kind === 'boolean') return (r) => r.boolean()
  throw unexpected(schema, 'a boolean')
}

export function compileList<T>(schema: AvroSchema, compile: (items: AvroSchema) => Read<T>): Read<T[]> {
  if (schema.kind !== 'array') throw unexpected(schema, 'a list')
  const readItem = compile(schema.items)
  return (r) => {
    const items: T[] = []
    for (let count = r.number(); count !== 0; count = r.number()) {
      if (count < 0) r.skipNumber()
      for (let i = Math.abs(count); i > 0; i -= 1) items.push(readItem(r))
    }
    return items
  }
}

function unexpected(schema: AvroSchema, expected: string): IcebergError {
  return new IcebergError('avro_invalid', `An Avro ${schema.kind} stands where ${expected} is expected`)
}
