/** Columns side by side, as wide as they must be; the last one ends where it ends. */
export function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const all = [head, ...rows]
  const widths = head.map((_, column) => Math.max(...all.map((row) => width(row[column] ?? ''))))
  return all
    .map((row) =>
      row
        .map((cell, column) => cell + ' '.repeat((widths[column] ?? 0) - width(cell)))
        .join('  ')
        .trimEnd(),
    )
    .join('\n')
}

/** Names and values below each other. */
export function facts(pairs: readonly (readonly [string, string | undefined])[]): string {
  const given = pairs.filter((pair): pair is readonly [string, string] => pair[1] !== undefined)
  const longest = Math.max(...given.map(([name]) => name.length))
  return given.map(([name, value]) => `${name.padEnd(longest)}  ${value}`).join('\n')
}

// oxlint-disable-next-line no-control-regex -- the escape character is what colours begin with
const colour = /\u001b\[[\d;]*m/g

function width(text: string): number {
  return text.replaceAll(colour, '').length
}
