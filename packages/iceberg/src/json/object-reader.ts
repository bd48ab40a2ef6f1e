import { IcebergError } from '../errors.ts'
import { type Json, type JsonObject, NumberText } from './json.ts'
import type { Steps } from './steps.ts'

/** Reads the members of a JSON object with their types checked, and remembers which were asked for. */
export class ObjectReader {
  readonly #object: JsonObject
  readonly #what: string
  readonly #known = new Set<string>()

  constructor(json: Json | undefined, what: string) {
    if (!isObject(json)) throw invalid(`${what} is not a JSON object`)
    this.#object = json
    this.#what = what
  }

  /** The member as it is; undefined when it is absent or null. */
  raw(key: string): Json | undefined {
    this.#known.add(key)
    return this.#object[key] ?? undefined
  }

  optionalString(key: string): string | undefined {
    const value = this.raw(key)
    if (value !== undefined && typeof value !== 'string') throw this.#wrong(key, 'a string')
    return value
  }

  optionalBoolean(key: string): boolean | undefined {
    const value = this.raw(key)
    if (value !== undefined && typeof value !== 'boolean') throw this.#wrong(key, 'true or false')
    return value
  }

  optionalInt(key: string): number | undefined {
    const value = this.raw(key)
    if (value === undefined) return undefined
    if (typeof value !== 'number' || !Number.isSafeInteger(value)) throw this.#wrong(key, 'an integer')
    return value
  }

  optionalLong(key: string): bigint | undefined {
    const value = this.raw(key)
    if (value === undefined) return undefined
    const long = typeof value === 'number' && Number.isSafeInteger(value) ? BigInt(value) : value
    if (typeof long !== 'bigint' || BigInt.asIntN(64, long) !== long) throw this.#wrong(key, 'a 64-bit integer')
    return long
  }

  optionalArray<T>(key: string, read: (item: Json, what: string) => T): T[] | undefined {
    const value = this.raw(key)
    if (value === undefined) return undefined
    if (!Array.isArray(value)) throw this.#wrong(key, 'an array')
    return value.map((item, index) => read(item, `${this.#what}, ${key}[${index}]`))
  }

  /** The same in steps, for arrays that may be long. */
  *optionalArraySteps<T>(key: string, read: (item: Json, what: string) => T): Steps<T[] | undefined> {
    const value = this.raw(key)
    if (value === undefined) return undefined
    if (!Array.isArray(value)) throw this.#wrong(key, 'an array')
    const items: T[] = []
    for (const [index, item] of value.entries()) {
      items.push(read(item, `${this.#what}, ${key}[${index}]`))
      yield
    }
    return items
  }

  /** An object of strings, such as properties and summaries. Other scalars are taken as their text, as Java does. */
  optionalStrings(key: string): Record<string, string> | undefined {
    const value = this.raw(key)
    if (value === undefined) return undefined
    if (!isObject(value)) throw this.#wrong(key, 'an object of strings')
    const strings: Record<string, string> = {}
    for (const [name, text] of Object.entries(value)) {
      if (text instanceof NumberText) strings[name] = text.text
      else if (typeof text !== 'object') strings[name] = String(text)
      else throw this.#wrong(key, 'an object of strings')
    }
    return strings
  }

  string(key: string): string {
    return this.#required(key, this.optionalString(key))
  }

  boolean(key: string): boolean {
    return this.#required(key, this.optionalBoolean(key))
  }

  int(key: string): number {
    return this.#required(key, this.optionalInt(key))
  }

  long(key: string): bigint {
    return this.#required(key, this.optionalLong(key))
  }

  array<T>(key: string, read: (item: Json, what: string) => T): T[] {
    return this.#required(key, this.optionalArray(key, read))
  }

  /** The members nobody asked for, to be written back. */
  unknown(): { unknownKeys?: JsonObject } {
    const rest = Object.entries(this.#object).filter(([key]) => !this.#known.has(key))
    return rest.length === 0 ? {} : { unknownKeys: Object.fromEntries(rest) }
  }

  #required<T>(key: string, value: T | undefined): T {
    if (value === undefined) throw invalid(`${this.#what} lacks "${key}"`)
    return value
  }

  #wrong(key: string, expected: string): IcebergError {
    return invalid(`${this.#what}: "${key}" is not ${expected}`)
  }
}

export function isObject(json: Json | undefined): json is JsonObject {
  return typeof json === 'object' && json !== null && !Array.isArray(json)
}

function invalid(message: string): IcebergError {
  return new IcebergError('metadata_invalid', message)
}

/** Drops the members that are undefined; what is left is written in this order. */
export function compact(members: Record<string, unknown>): JsonObject {
  const object: JsonObject = {}
  for (const [key, value] of Object.entries(members)) if (value !== undefined) object[key] = value as Json
  return object
}

type Defined<T> = { [K in keyof T as undefined extends T[K] ? never : K]: T[K] } & {
  [K in keyof T as undefined extends T[K] ? K : never]?: Exclude<T[K], undefined>
}

/** The object without its members that are undefined. */
export function defined<T extends object>(object: T): Defined<T> {
  return Object.fromEntries(Object.entries(object).filter(([, value]) => value !== undefined)) as Defined<T>
}
