// @ts-check

/** The rows as a table for the terminal. */
export function textTable(rows, systems) {
  const lines = linesOf(rows, systems)
  const widths = widthsOf(lines)
  const [head = '', ...body] = lines.map((cells) => padded(cells, widths).join('  ').trimEnd())
  return [head, widths.map((width) => '-'.repeat(width)).join('  '), ...body].join('\n')
}

/** The same rows in Markdown. */
export function markdownTable(rows, systems) {
  const lines = linesOf(rows, systems)
  const widths = widthsOf(lines)
  const [head = '', ...body] = lines.map((cells) => `| ${padded(cells, widths).join(' | ')} |`)
  const rule = widths.map((width, column) => (column === 0 ? '-'.repeat(width) : `${'-'.repeat(width - 1)}:`))
  return [head, `| ${rule.join(' | ')} |`, ...body].join('\n')
}

/** What a cell shows; `worst` is for counts of what must not happen, where a median would hide some. */
export function cellText(cell, { worst = false } = {}) {
  switch (cell?.kind) {
    case undefined:
      return ''
    case 'measured':
      if (worst) return number(cell.max)
      return cell.values.length > 1 && cell.median > 0
        ? `${number(cell.median)} ±${Math.round(cell.spread * 100)}%`
        : number(cell.median)
    case 'over':
      return `> ${cell.over}`
    case 'out_of_time':
      return `not in ${cell.seconds} s`
    case 'not_measured':
      return 'not measured'
    case 'failed':
      return 'failed'
    default:
      return 'n/a'
  }
}

export function number(value) {
  if (value >= 10_000) return `${(value / 1000).toFixed(1)}k`
  if (value >= 100) return value.toFixed(0)
  if (Number.isInteger(value)) return String(value)
  return value >= 10 ? value.toFixed(1) : value.toFixed(2)
}

function linesOf(rows, systems) {
  return [
    ['workload', ...systems.map(({ label }) => label), 'ratio', 'bar', 'verdict'],
    ...rows.map((row) => [
      `${row.label}, ${row.unit}`,
      ...systems.map(({ name }) => cellText(row.cells[name], row)),
      row.ratio === undefined ? '' : `${row.ratio.toFixed(2)}${row.bar?.against ? ' of own drain' : ''}`,
      barText(row.bar),
      row.verdict ?? '',
    ]),
  ]
}

function barText(bar) {
  if (bar === undefined) return ''
  if (bar.zero) return '0'
  return bar.atLeast === undefined ? `≤ ${bar.atMost.toFixed(1)}` : `≥ ${bar.atLeast.toFixed(1)}`
}

function widthsOf(lines) {
  return lines[0].map((_, column) => Math.max(...lines.map((line) => line[column].length)))
}

function padded(cells, widths) {
  return cells.map((cell, column) => (column === 0 ? cell.padEnd(widths[column]) : cell.padStart(widths[column])))
}
