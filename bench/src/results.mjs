// @ts-check
import { median } from './statistics.mjs'

/*
 * From runs to a row. A run is { [key]: value } with a value per row, or says why there is none:
 *
 *   { error }              it failed
 *   { outOfTime: n }       it was ended after n seconds
 *   { notMeasured: true }  the time of a quick run was over
 *
 * A value is a number, or { over: n } when it was given up on after n. A cell with neither is n/a: the system has no
 * such thing.
 */

/** Every row of the workloads, with a cell for each system and what became of its bar. */
export function summarise(workloads, systems, results) {
  const rows = workloads.flatMap((workload) =>
    workload.rows.map(({ variant, ...row }) => ({
      ...row,
      workload: workload.name,
      cells:
        variant === undefined
          ? Object.fromEntries(systems.map(({ name }) => [name, cellOf(results, workload.name, name, row.key)]))
          : { [variant.of]: cellOf(results, workload.name, variant.system, variant.key) },
    })),
  )
  return judged(rows.filter(({ cells }) => systems.some(({ name }) => name in cells)))
}

/** An earlier result's rows with those of these workloads in their place; in the order of all workloads. */
export function merged(all, earlier, rows) {
  const measured = new Set(rows.map(({ workload }) => workload))
  const kept = earlier.filter(({ workload }) => !measured.has(workload))
  return judged(all.flatMap(({ name }) => [...kept, ...rows].filter(({ workload }) => workload === name)))
}

/** The rows with their ratios and verdicts. */
export function judged(rows) {
  return rows.map((row) => ({ ...row, ...judge(row, rows) }))
}

/** A row of our own for a variant of ours: no peers, no bar. */
export function durableRow({ bar: _, ...row }) {
  return {
    ...row,
    key: `${row.key}_durable`,
    label: `${row.label}, with durableClaims: true`,
    variant: { of: 'fencepost', system: 'fencepost-durable', key: row.key },
  }
}

function cellOf(results, workload, system, key) {
  const runs = results[workload]?.[system]
  if (runs === undefined) return { kind: 'none' }
  const values = runs.flatMap((run) => (run[key] === undefined ? [] : [run[key]]))
  const error = runs.find((run) => run.error !== undefined)?.error
  if (error !== undefined) return { kind: 'failed', error }
  const seconds = runs.find((run) => run.outOfTime !== undefined)?.outOfTime
  if (seconds !== undefined) return { kind: 'out_of_time', seconds, values }
  const over = values.find((value) => typeof value !== 'number')
  if (over !== undefined) return { kind: 'over', over: over.over, values }
  if (values.length === 0) return { kind: runs.some((run) => run.notMeasured) ? 'not_measured' : 'none' }
  const middle = median(values)
  const [min, max] = [Math.min(...values), Math.max(...values)]
  return { kind: 'measured', median: middle, min, max, spread: middle === 0 ? 0 : (max - min) / middle / 2, values }
}

function judge(row, rows) {
  const { fencepost: ours, ...others } = row.cells
  // A bar may name the one peer that it is about.
  const peers = Object.entries(others).filter(([name]) => row.bar?.of === undefined || row.bar.of === name)
  const ratio = ratioOf(
    row,
    ours,
    peers.map(([, cell]) => cell),
    rows,
  )
  return { ratio, verdict: row.bar === undefined || ours === undefined ? undefined : verdictOf(row.bar, ours, ratio) }
}

function verdictOf(bar, ours, ratio) {
  if (ours.kind === 'not_measured') return 'not measured'
  if (ours.kind !== 'measured') return 'missed'
  // One stale write in any run is one too many: the median would hide it.
  if (bar.zero) return ours.max === 0 ? 'met' : 'missed'
  if (ratio === undefined) return undefined
  const met = bar.atLeast === undefined ? ratio <= bar.atMost : ratio >= bar.atLeast
  return met ? 'met' : 'missed'
}

/** Ours by the best peer's; undefined where either is missing. */
function ratioOf(row, ours, peers, rows) {
  // Of what must not happen there is no better or worse.
  if (ours?.kind !== 'measured' || row.worst) return undefined
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
