/** A statement with its values apart from its text: values are always parameters. */
export class Sql {
  readonly parts: readonly string[]
  readonly values: readonly unknown[]

  constructor(parts: readonly string[], values: readonly unknown[]) {
    this.parts = parts
    this.values = values
  }

  /** The text with $1, $2, … in place of the values. */
  get text(): string {
    return this.parts.reduce((text, part, index) => `${text}$${index}${part}`)
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

/** A quoted identifier. */
export function identifier(name: string): Sql {
  return raw(`"${name.replaceAll('"', '""')}"`)
}

/** Fragments with a separator between them. */
export function join(fragments: readonly Sql[], separator: string): Sql {
  return fragments.reduce((all, next, index) => (index === 0 ? next : sql`${all}${raw(separator)}${next}`), raw(''))
}
