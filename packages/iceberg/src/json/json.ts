import { isInteger, parse, stringify } from 'lossless-json'
import { IcebergError } from '../errors.ts'

/** A number whose text a JavaScript number would change, such as 1.10 or 1e400. Written back as it was read. */
export class NumberText {
  readonly text: string

  constructor(text: string) {
    this.text = text
  }
}

export type Json = null | boolean | number | bigint | NumberText | string | Json[] | JsonObject
export interface JsonObject {
  [key: string]: Json
}

/** The value of a number by its text, without loss. */
export function numberFromJson(text: string): number | bigint | NumberText {
  const number = Number(text)
  if (isInteger(text)) return Number.isSafeInteger(number) && !Object.is(number, -0) ? number : exactInteger(text)
  return String(number) === text ? number : new NumberText(text)
}

function exactInteger(text: string): bigint | NumberText {
  return text === '-0' ? new NumberText(text) : BigInt(text)
}

/** Parses JSON without loss: an integer beyond 2^53 is a bigint, any other number keeps its text. */
export function parseJson(text: string, what = 'the text'): Json {
  try {
    return parse(text, undefined, numberFromJson) as Json
  } catch (cause) {
    throw new IcebergError('json_invalid', `${what} is not JSON: ${(cause as Error).message}`, { cause })
  }
}

const numberTexts = [
  { test: (value: unknown): boolean => value instanceof NumberText, stringify: (v: unknown) => (v as NumberText).text },
]

/** Writes JSON with bigints as bare integers. */
export function stringifyJson(value: unknown, indent?: number): string {
  const text = stringify(value, undefined, indent, numberTexts)
  if (text === undefined) throw new IcebergError('json_invalid', 'undefined cannot be written as JSON')
  return text
}

/** Writes what was read, or made of plain values, as `stringifyJson` does, but faster. */
export function jsonText(value: Json): string {
  if (typeof value === 'string') return JSON.stringify(value)
  if (typeof value === 'bigint') return String(value)
  if (typeof value !== 'object' || value === null) return JSON.stringify(value)
  if (value instanceof NumberText) return value.text
  if (Array.isArray(value)) return `[${value.map(jsonText).join(',')}]`
  let text = ''
  for (const key in value) {
    const member = value[key]
    if (member === undefined) continue
    text += `${text === '' ? '{' : ','}${JSON.stringify(key)}:${jsonText(member)}`
  }
  return text === '' ? '{}' : `${text}}`
}
