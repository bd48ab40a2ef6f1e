import { UsageError } from '../failure.ts'

/** What can be given: an option of a command, or a setting. */
export interface ValueSpec {
  readonly kind: 'text' | 'integer' | 'boolean' | 'list'
  readonly description: string
  /** What stands for the value in the help. */
  readonly placeholder?: string
  readonly choices?: readonly string[]
  readonly min?: number
  readonly max?: number
}

interface Kinds {
  text: string
  integer: number
  boolean: boolean
  list: readonly string[]
}

/** The type of a value by its spec. */
export type ValueOf<Spec extends ValueSpec> = Spec['choices'] extends readonly (infer Choice)[]
  ? Choice
  : Kinds[Spec['kind']]

/** A value read from text, as flags and variables have it; `where` names it in the error. */
export function readText(spec: ValueSpec, text: string, where: string): Kinds[ValueSpec['kind']] {
  switch (spec.kind) {
    case 'text':
      return checkValue(spec, text, where)
    case 'integer':
      return checkValue(spec, /^-?\d{1,15}$/.test(text.trim()) ? Number(text) : text, where)
    case 'boolean':
      return checkValue(spec, { true: true, '1': true, false: false, '0': false }[text.toLowerCase()] ?? text, where)
    case 'list':
      return checkValue(spec, splitList(text), where)
  }
}

/** A value as it should be, or an error that says what is wrong with it. */
export function checkValue(spec: ValueSpec, value: unknown, where: string): Kinds[ValueSpec['kind']] {
  const refuse = (wanted: string) => new UsageError(`${where} is ${JSON.stringify(value)}; give ${wanted}.`)
  switch (spec.kind) {
    case 'text':
      if (typeof value !== 'string' || value === '') throw refuse('text that is not empty')
      if (spec.choices !== undefined && !spec.choices.includes(value)) throw refuse(oneOf(spec.choices))
      return value
    case 'integer': {
      const { min = -2_147_483_648, max = 2_147_483_647 } = spec
      if (!Number.isSafeInteger(value) || Number(value) < min || Number(value) > max) {
        throw refuse(`a whole number from ${min} to ${max}`)
      }
      return Number(value)
    }
    case 'boolean':
      if (typeof value !== 'boolean') throw refuse('true or false')
      return value
    case 'list':
      if (!Array.isArray(value) || !value.every((one) => typeof one === 'string' && one !== '')) throw refuse('a list')
      return value as string[]
  }
}

/** The parts of a list written with commas. */
export function splitList(text: string): string[] {
  return text
    .split(',')
    .map((part) => part.trim())
    .filter((part) => part !== '')
}

export function oneOf(choices: readonly string[]): string {
  return choices.length === 1 ? (choices[0] ?? '') : `${choices.slice(0, -1).join(', ')} or ${choices.at(-1)}`
}
