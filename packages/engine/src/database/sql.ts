/** A statement with its values apart from its text: values are always parameters. */
export class Sql {
  readonly parts: readonly string[]
  /** What is between the parts, in order. */
  readonly holes: readonly unknown[]
  readonly values: readonly unknown[]
  #text: string | undefined

  constructor(
    parts: readonly string[],
    holes: readonly unknown[],
    parameters?: { text: string; values: readonly unknown[] },
  ) {
    this.parts = parts
    this.holes = holes
    this.values = parameters?.values ?? holes
    this.#text = parameters?.text
  }

  /** The text with $1, $2, … in place of the values. */
  get text(): string {
    this.#text ??= textOf(this.parts, (hole) => hole + 1)
    return this.#text
  }
}

function textOf(parts: readonly string[], parameterOf: (hole: number) => number): string {
  return parts.reduce((text, part, index) => `${text}$${parameterOf(index - 1)}${part}`)
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
        values.push(hole.holes[nth - 1])
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
 *
 * A value that it names several times is one parameter: it is sent once, and Postgres reads it once. So it has to be of
 * one type wherever it stands.
 */
export function form<Engine extends object, Values extends object>(
  build: (engine: Engine, blanks: Blanks<Values>, shape: string) => Sql,
): (engine: Engine, values: Values, shape?: string) => Sql {
  const built = new WeakMap<Engine, Map<string, Built>>()
  const blanks = new Proxy({}, { get: (_, name) => new Blank(String(name)) }) as Blanks<Values>
  return (engine, values, shape = '') => {
    const shapes = built.get(engine) ?? new Map<string, Built>()
    const statement = shapes.get(shape) ?? numbered(build(engine, blanks, shape))
    if (!shapes.has(shape)) built.set(engine, shapes.set(shape, statement))
    const holes = statement.holes.map((hole) =>
      hole instanceof Blank ? (values as Record<string, unknown>)[hole.name] : hole,
    )
    const parameters = { text: statement.text, values: statement.firstHoles.map((hole) => holes[hole]) }
    return new Sql(statement.parts, holes, parameters)
  }
}

interface Built {
  parts: readonly string[]
  holes: readonly unknown[]
  text: string
  /** For every parameter, the first hole that it fills. */
  firstHoles: readonly number[]
}

function numbered({ parts, holes }: Sql): Built {
  const firstHoles: number[] = []
  const known = new Map<string, number>()
  const parameters = holes.map((hole, nth) => {
    const earlier = hole instanceof Blank ? known.get(hole.name) : undefined
    if (earlier !== undefined) return earlier
    const parameter = firstHoles.push(nth)
    if (hole instanceof Blank) known.set(hole.name, parameter)
    return parameter
  })
  return { parts, holes, text: textOf(parts, (hole) => parameters[hole] as number), firstHoles }
}
