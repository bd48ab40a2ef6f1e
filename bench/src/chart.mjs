// @ts-check
import { number } from './table.mjs'

/*
 * The chart of the README: a group of bars per row, each group on a scale of its own. No background and colours that
 * hold on white and on black; text takes the colour of the reader's scheme.
 */

const shown = ['bulk', 'single_10', 'drain', 'drain_1ms', 'xmin_3', 'latency_p50', 'latency_p99']
const colours = ['#2563eb', '#94a3b8', '#a78bfa', '#f59e0b']
const width = 760
const left = 230
const right = 90
const barHeight = 13
const groupGap = 18
const top = 46

/** An SVG of the rows that are worth a picture. */
export function chart(rows, systems, caption) {
  const groups = rows.filter(({ key }) => shown.includes(key))
  const groupHeight = systems.length * (barHeight + 2) + groupGap
  const height = top + groups.length * groupHeight + 24
  const parts = [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" role="img" aria-label="${escape(caption)}">`,
    `<style>text{font:12px system-ui,-apple-system,'Segoe UI',sans-serif;fill:#1f2937}.dim{fill:#6b7280}.own{font-weight:600}`,
    `@media(prefers-color-scheme:dark){text{fill:#e5e7eb}.dim{fill:#9ca3af}}</style>`,
    ...legend(systems),
    ...groups.flatMap((row, nth) => group(row, systems, top + nth * groupHeight)),
    `<text class="dim" x="0" y="${height - 6}">${escape(caption)}</text>`,
    '</svg>',
  ]
  return `${parts.join('\n')}\n`
}

function legend(systems) {
  let x = 0
  return systems.flatMap(({ label, version }, nth) => {
    const text = `${label} ${version}`
    const at = x
    x += 30 + text.length * 6.6
    return [
      `<rect x="${at}" y="8" width="11" height="11" rx="2" fill="${colours[nth]}"/>`,
      `<text x="${at + 16}" y="18">${escape(text)}</text>`,
    ]
  })
}

function group(row, systems, y) {
  const values = systems.map(({ name }) => row.cells[name]).map((cell) => (cell.kind === 'measured' ? cell.median : 0))
  const most = Math.max(...values, Number.MIN_VALUE)
  const middle = y + (systems.length * (barHeight + 2)) / 2
  return [
    `<text x="0" y="${middle - 2}">${escape(row.label)}</text>`,
    `<text class="dim" x="0" y="${middle + 13}">${row.unit}, ${row.better} is better</text>`,
    ...systems.flatMap((system, nth) => {
      const at = y + nth * (barHeight + 2)
      const length = Math.max(1, ((width - left - right) * (values[nth] ?? 0)) / most)
      const own = system.name === 'fencepost' ? ' class="own"' : ' class="dim"'
      const text = values[nth] ? number(values[nth]) : 'n/a'
      return [
        `<rect x="${left}" y="${at}" width="${length.toFixed(1)}" height="${barHeight}" rx="2" fill="${colours[nth]}"/>`,
        `<text${own} x="${(left + length + 6).toFixed(1)}" y="${at + barHeight - 2}">${text}</text>`,
      ]
    }),
  ]
}

function escape(text) {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('"', '&quot;')
}
