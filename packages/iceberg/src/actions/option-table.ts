import { IcebergError } from '../errors.ts'

// The options of an action are one table: name, default, what is allowed, and what the docs say. The names are those of
// Spark's procedures, and values may come as text, as they do in Spark.

/** One option. */
export interface OptionDefinition<V> {
  readonly doc: string
  readonly default: V
  /** The default as the docs have it, where it follows from something else. */
  readonly defaultText: string
  /** What is allowed, in words. */
  readonly allowed: string
  /** The value of a text; undefined when it is not allowed. */
  readonly parse: (text: string) => V | undefined
}

export type OptionTable = Readonly<Record<string, OptionDefinition<unknown>>>

/** The options as a caller gives them. */
export type GivenOptions = Readonly<Record<string, string | number | boolean | bigint | undefined>>

export type OptionValues<T extends OptionTable> = {
  readonly [K in keyof T]: T[K] extends OptionDefinition<infer V> ? V : never
}

export function integerOption<D extends number | undefined>(
  doc: string,
  { min, max = Number.MAX_SAFE_INTEGER, ...of }: { min: number; max?: number; default: D; defaultText?: string },
): OptionDefinition<number | D> {
  const allowed = max === Number.MAX_SAFE_INTEGER ? `a whole number, at least ${min}` : `${min} to ${max}`
  const parse = (text: string): number | undefined => {
    const value = /^\d+$/.test(text.trim()) ? Number(text) : Number.NaN
    // Java's largest long stands for "no limit".
    const capped = value > Number.MAX_SAFE_INTEGER ? max : value
    return capped >= min && capped <= max ? capped : undefined
  }
  return { doc, default: of.default, defaultText: of.defaultText ?? String(of.default), allowed, parse }
}

export function numberOption(
  doc: string,
  { above, most, ...of }: { above: number; most: number; default: number },
): OptionDefinition<number> {
  const parse = (text: string): number | undefined => {
    const value = text.trim() === '' ? Number.NaN : Number(text)
    return value > above && value <= most ? value : undefined
  }
  const allowed = `a number above ${above}, at most ${most}`
  return { doc, default: of.default, defaultText: String(of.default), allowed, parse }
}

export function booleanOption(doc: string, otherwise: boolean): OptionDefinition<boolean> {
  const parse = (text: string): boolean | undefined =>
    ({ true: true, false: false })[text.trim().toLowerCase() as 'true' | 'false']
  return { doc, default: otherwise, defaultText: String(otherwise), allowed: 'true or false', parse }
}

export function choiceOption<C extends string>(
  doc: string,
  choices: readonly C[],
  otherwise: NoInfer<C>,
): OptionDefinition<C> {
  const parse = (text: string): C | undefined => choices.find((choice) => choice === text.trim().toLowerCase())
  return { doc, default: otherwise, defaultText: otherwise, allowed: choices.join(', '), parse }
}

/** Checks what a caller gave against the table of an action, and fills in the defaults. */
export function readOptions<T extends OptionTable>(action: string, table: T, given: GivenOptions): OptionValues<T> {
  for (const name of Object.keys(given)) {
    if (Object.hasOwn(table, name)) continue
    const near = nearest(name, Object.keys(table))
    const hint = near === undefined ? `Known are ${Object.keys(table).join(', ')}.` : `Did you mean ${near}?`
    throw new IcebergError('action_refused', `${action} has no option "${name}". ${hint}`, {
      details: { action, option: name },
    })
  }
  const values = Object.entries(table).map(([name, definition]) => {
    const value = given[name]
    if (value === undefined) return [name, definition.default]
    const parsed = definition.parse(String(value))
    if (parsed !== undefined) return [name, parsed]
    throw new IcebergError(
      'action_refused',
      `The option ${name} of ${action} is "${String(value)}"; allowed is ${definition.allowed}.`,
      { details: { action, option: name, value: String(value) } },
    )
  })
  return Object.fromEntries(values) as OptionValues<T>
}

/** The name that is meant by one that is nearly right. */
function nearest(name: string, names: readonly string[]): string | undefined {
  const plain = (text: string): string => text.toLowerCase().replaceAll(/[^a-z]/g, '')
  const begun = names.find((known) => known.startsWith(name) || name.startsWith(known))
  if (begun !== undefined && name.length > 3) return begun
  const distances = names.map((known) => ({ known, distance: editDistance(plain(name), plain(known)) }))
  const best = distances.toSorted((a, b) => a.distance - b.distance)[0]
  return best !== undefined && best.distance <= Math.max(2, name.length / 4) ? best.known : undefined
}

function editDistance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, n) => n)
  for (let i = 1; i <= a.length; i += 1) {
    const next = [i]
    for (let j = 1; j <= b.length; j += 1) {
      const replaced = (row[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1)
      next.push(Math.min(replaced, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1))
    }
    row = next
  }
  return row[b.length] ?? 0
}
