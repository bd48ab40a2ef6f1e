// @ts-check
import { median } from './statistics.mjs'

/*
 * From runs to a row. A value is a number, or { over: n } when it was given up on after n, and a cell without any is
 * n/a (the system has no such thing) or failed.
 */

/**
 * @typedef {number | { over: number }} Value
 * @typedef {object} CellResult
 * @property {Value[]} values
 * @property {string} [error]
 */

/** Every row of the workloads, with a cell for each system and what became of its bar. */
export function summarise(workloads, systems, results) {
  const rows = workloads.flatMap((workload) =>
    workload.rows.map((row) => ({
      ...row,
      workload: workload.name,
      cells: Object.fromEntries(systems.map(({ name }) => [name, cellOf(results, workload.name, name, row.key)])),
    })),
  )
  return judged(rows)
}

/** An earlier result's rows with those of these workloads in their place; in the order of all workloads. */
export function merged(all, earlier, rows) {
  const measured = new Set(rows.map(({ workload }) => workload))
  const kept = earlier.filter(({ workload }) => !measured.has(workload))
  return judged(all.flatMap(({ name }) => [...kept, ...rows].filter(({ workload }) => workload === name)))
}

function judged(rows) {
  return rows.map((row) => ({ ...row, ...judge(row, rows) }))
}

function cellOf(results, workload, system, key) {
  const runs = results[workload]?.[system]
  if (runs === undefined) return { kind: 'none' }
  const values = runs.flatMap((run) => (run[key] === undefined ? [] : [run[key]]))
  const error = runs.find((run) => run.error !== undefined)?.error
  if (error !== undefined) return { kind: 'failed', error }
  const numbers = values.filter((value) => typeof value === 'number')
  const over = values.find((value) => typeof value !== 'number')
  if (over !== undefined) return { kind: 'over', over: over.over, values }
  if (numbers.length === 0) return { kind: 'none' }
  const middle = median(numbers)
  const spread = middle === 0 ? 0 : (Math.max(...numbers) - Math.min(...numbers)) / middle / 2
  return { kind: 'measured', median: middle, min: Math.min(...numbers), max: Math.max(...numbers), spread, values }
}

function judge(row, rows) {
  const { fencepost: ours, ...others } = row.cells
  const ratio = ratioOf(row, ours, Object.values(others), rows)
  const { bar } = row
  if (bar === undefined) return { ratio }
  if (ours?.kind !== 'measured') return { ratio, verdict: ours === undefined ? undefined : 'missed' }
  if (bar.zero) return { ratio, verdict: ours.median === 0 ? 'met' : 'missed' }
  if (ratio === undefined) return { ratio }
  const met = bar.atLeast === undefined ? ratio <= bar.atMost : ratio >= bar.atLeast
  return { ratio, verdict: met ? 'met' : 'missed' }
}

/** Ours by the best peer's; undefined where either is missing. */
function ratioOf(row, ours, peers, rows) {
  if (ours?.kind !== 'measured') return undefined
  if (row.bar?.against !== undefined) {
    const own = rows.find(({ key }) => key === row.bar.against)?.cells.fencepost
    return own?.kind === 'measured' ? ours.median / own.median : undefined
  }
  const best = bestOf(peers, row.better)
  return best === undefined || best === 0 ? undefined : ours.median / best
}

// One that was given up on is at least so slow: enough to say that we were faster.
function bestOf(peers, better) {
  const known = peers.flatMap((cell) =>
    cell.kind === 'measured' ? [cell.median] : cell.kind === 'over' ? [cell.over] : [],
  )
  if (known.length === 0) return undefined
  return better === 'higher' ? Math.max(...known) : Math.min(...known)
}
