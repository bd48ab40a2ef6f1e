/** A statement with its values apart from its text: values are always parameters. */
export class Sql {
  readonly parts: readonly string[]
  readonly values: readonly unknown[]
  #text: string | undefined

  constructor(parts: readonly string[], values: readonly unknown[], text?: string) {
    this.parts = parts
    this.values = values
    this.#text = text
  }

  /** The text with $1, $2, … in place of the values. */
  get text(): string {
    this.#text ??= this.parts.reduce((text, part, index) => `${text}$${index}${part}`)
    return this.#text
  }
}

/** Builds a statement. An interpolated Sql is spliced in; anything else becomes a parameter. */
export function sql(strings: TemplateStringsArray, ...holes: readonly unknown[]): Sql {
  const parts: string[] = [strings[0] ?? '']
  const values: unknown[] = []
  const append = (text: string) => {
    parts[parts.length - 1] += text
  }
  holes.forEach((hole, index) => {
    if (hole instanceof Sql) {
      hole.parts.forEach((part, nth) => {
        if (nth === 0) return append(part)
        values.push(hole.values[nth - 1])
        parts.push(part)
      })
    } else {
      values.push(hole)
      parts.push('')
    }
    append(strings[index + 1] ?? '')
  })
  return new Sql(parts, values)
}

/** Text that goes into a statement as it is. Never give it anything that came from outside. */
export function raw(text: string): Sql {
  return new Sql([text], [])
}

/** True for a statement that changes rows, also where that is one part of it; for some that only lock rows, too. */
export function mayWrite({ text }: Sql): boolean {
  return /\b(insert|update|delete)\b/.test(text)
}

/** A quoted identifier. */
export function identifier(name: string): Sql {
  return raw(`"${name.replaceAll('"', '""')}"`)
}

/** Fragments with a separator between them. */
export function join(fragments: readonly Sql[], separator: string): Sql {
  return fragments.reduce((all, next, index) => (index === 0 ? next : sql`${all}${raw(separator)}${next}`), raw(''))
}

/** A value that is filled in later. */
class Blank {
  readonly name: string

  constructor(name: string) {
    this.name = name
  }
}

/** Blanks by the names of the values that they stand for. */
export type Blanks<Values> = { readonly [Name in keyof Values]: Blank }

/**
 * A statement that is put together once, for one engine and one `shape` of it, and then only filled in: building the
 * text of a long one takes longer than many an engine call should.
 */
export function form<Engine extends object, Values extends object>(
  build: (engine: Engine, blanks: Blanks<Values>, shape: string) => Sql,
): (engine: Engine, values: Values, shape?: string) => Sql {
  const built = new WeakMap<Engine, Map<string, Sql>>()
  const blanks = new Proxy({}, { get: (_, name) => new Blank(String(name)) }) as Blanks<Values>
  return (engine, values, shape = '') => {
    const shapes = built.get(engine) ?? new Map<string, Sql>()
    const statement = shapes.get(shape) ?? build(engine, blanks, shape)
    if (!shapes.has(shape)) built.set(engine, shapes.set(shape, statement))
    const filled = statement.values.map((value) =>
      value instanceof Blank ? (values as Record<string, unknown>)[value.name] : value,
    )
    return new Sql(statement.parts, filled, statement.text)
  }
}
