// @ts-check

/** The rows as a text table. */
export function table(rows, systems) {
  const head = ['workload', ...systems.map(({ label }) => label), 'ratio', 'bar', '']
  const body = rows.map((row) => [
    `${row.label} (${row.unit})`,
    ...systems.map(({ name }) => cellText(row.cells[name])),
    row.ratio === undefined ? '' : `${row.ratio.toFixed(2)}${row.bar?.against ? ' of own drain' : ''}`,
    barText(row.bar),
    row.verdict ?? '',
  ])
  const widths = head.map((_, column) => Math.max(...[head, ...body].map((line) => line[column].length)))
  const line = (cells) =>
    cells
      .map((cell, column) => (column === 0 ? cell.padEnd(widths[column]) : cell.padStart(widths[column])))
      .join('  ')
      .trimEnd()
  return [line(head), widths.map((width) => '-'.repeat(width)).join('  '), ...body.map(line)].join('\n')
}

export function number(value) {
  if (value >= 10_000) return `${(value / 1000).toFixed(1)}k`
  if (value >= 100) return value.toFixed(0)
  if (Number.isInteger(value)) return String(value)
  return value >= 10 ? value.toFixed(1) : value.toFixed(2)
}

function cellText(cell) {
  switch (cell.kind) {
    case 'measured':
      return cell.values.length > 1 && cell.median > 0
        ? `${number(cell.median)} ±${Math.round(cell.spread * 100)}%`
        : number(cell.median)
    case 'over':
      return `> ${cell.over}`
    case 'failed':
      return 'failed'
    default:
      return 'n/a'
  }
}

function barText(bar) {
  if (bar === undefined) return ''
  if (bar.zero) return '0'
  return bar.atLeast === undefined ? `≤ ${bar.atMost.toFixed(1)}` : `≥ ${bar.atLeast.toFixed(1)}`
}
