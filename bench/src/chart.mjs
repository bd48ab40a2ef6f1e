// @ts-check
import { cellText, number } from './table.mjs'

/*
 * The chart of the README: a group of bars per row, each group on a scale of its own. Text and background both take the
 * reader's scheme: a page of the other scheme must not make the text vanish.
 */

const shown = ['bulk', 'single_10', 'drain', 'drain_1ms', 'xmin_3', 'latency_p50', 'latency_p99']
const colours = ['#2563eb', '#94a3b8', '#a78bfa', '#f59e0b']
const width = 760
const left = 230
const right = 90
const barHeight = 13
const groupGap = 18
const top = 46
const lineHeight = 18
const margin = 12

/** An SVG of the rows that are worth a picture, with lines of text below. */
export function chart(rows, systems, captions) {
  const groups = rows.filter(({ key }) => shown.includes(key))
  const groupHeight = systems.length * (barHeight + 2) + groupGap
  const end = top + groups.length * groupHeight
  const height = end + captions.length * lineHeight + margin
  const around = `${-margin} ${-margin} ${width + 2 * margin} ${height + 2 * margin}`
  const parts = [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="${around}" role="img" aria-label="${escape(captions.join('; '))}">`,
    `<style>text{font:12px system-ui,-apple-system,'Segoe UI',sans-serif;fill:#1f2937}.dim{fill:#6b7280}.own{font-weight:600}.page{fill:#ffffff}`,
    `@media(prefers-color-scheme:dark){text{fill:#e5e7eb}.dim{fill:#9ca3af}.page{fill:#0d1117}}</style>`,
    `<rect class="page" x="${-margin}" y="${-margin}" width="${width + 2 * margin}" height="${height + 2 * margin}" rx="6"/>`,
    ...legend(systems),
    ...groups.flatMap((row, nth) => group(row, systems, top + nth * groupHeight)),
    ...captions.map(
      (caption, nth) => `<text class="dim" x="0" y="${end + (nth + 1) * lineHeight - 4}">${escape(caption)}</text>`,
    ),
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
  const cells = systems.map(({ name }) => row.cells[name])
  const lengths = cells.map(lengthOf)
  const most = Math.max(...lengths, Number.MIN_VALUE)
  const middle = y + (systems.length * (barHeight + 2)) / 2
  return [
    `<text x="0" y="${middle - 2}">${escape(row.label)}</text>`,
    `<text class="dim" x="0" y="${middle + 13}">${row.unit}, ${row.better} is better</text>`,
    ...systems.flatMap((system, nth) => {
      const at = y + nth * (barHeight + 2)
      const length = Math.max(1, ((width - left - right) * (lengths[nth] ?? 0)) / most)
      const own = system.name === 'fencepost' ? ' class="own"' : ' class="dim"'
      return [
        `<rect x="${left}" y="${at}" width="${length.toFixed(1)}" height="${barHeight}" rx="2" fill="${colours[nth]}"/>`,
        `<text${own} x="${(left + length + 6).toFixed(1)}" y="${at + barHeight - 2}">${escape(textOf(cells[nth], row))}</text>`,
      ]
    }),
  ]
}

function lengthOf(cell) {
  if (cell.kind === 'measured') return cell.median
  return cell.kind === 'over' ? cell.over : 0
}

function textOf(cell, { unit }) {
  if (cell.kind === 'measured') return number(cell.median)
  return cell.kind === 'over' ? `${cellText(cell)} ${unit}` : cellText(cell)
}

function escape(text) {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('"', '&quot;')
}
