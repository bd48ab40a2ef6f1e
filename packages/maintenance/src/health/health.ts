import type { HealthFacts } from './health-facts.ts'
import type { EffectiveSettings } from './health-settings.ts'
import { issuesOf, type HealthIssue } from './issues.ts'
import { recommendedActions, type RecommendedAction } from './recommended-actions.ts'
import { defaultScanCosts, partMicros, scanMicros, type ScanCosts, type ScanPart } from './scan-cost.ts'

export type MaintenanceAction =
  | 'rewrite_data_files'
  | 'rewrite_position_delete_files'
  | 'rewrite_manifests'
  | 'expire_snapshots'
  | 'remove_orphan_files'

export type LossCode =
  'manifests' | 'small_files' | 'deleted_rows' | 'position_deletes' | 'deletion_vectors' | 'equality_deletes'

/** What one scan loses to one thing that an action removes. */
export interface HealthLoss {
  readonly code: LossCode
  readonly seconds: number
  /** Whole points of the score. Those of all losses are 100 less the score. */
  readonly points: number
  readonly action: MaintenanceAction
}

/** How well a table is. */
export interface TableHealth {
  /** 100 × the seconds of an ideal scan ÷ those of a scan now, in whole points. */
  readonly score: number
  readonly band: 'good' | 'fair' | 'poor' | 'bad'
  readonly scanSeconds: number
  readonly idealScanSeconds: number
  readonly losses: readonly HealthLoss[]
  readonly wastedBytes: WastedBytes
  readonly issues: readonly HealthIssue[]
  readonly recommendedActions: readonly RecommendedAction[]
  /** What the score would be after them. */
  readonly scoreAfter: number
  readonly scanSecondsAfter: number
  readonly facts: HealthFacts['table']
  readonly settings: EffectiveSettings['sources']
}

export interface WastedBytes {
  readonly total: number
  /** Of files that only snapshots reach which may go. */
  readonly expirable: number
  /** Undefined: nobody has looked for orphans. */
  readonly orphans: number | undefined
}

const losses: readonly { part: ScanPart; code: LossCode; action: MaintenanceAction }[] = [
  { part: 'dataFiles', code: 'small_files', action: 'rewrite_data_files' },
  { part: 'deletedBytes', code: 'deleted_rows', action: 'rewrite_data_files' },
  { part: 'equalityDeletes', code: 'equality_deletes', action: 'rewrite_data_files' },
  { part: 'deletionVectors', code: 'deletion_vectors', action: 'rewrite_data_files' },
  { part: 'positionDeleteFiles', code: 'position_deletes', action: 'rewrite_position_delete_files' },
  { part: 'manifests', code: 'manifests', action: 'rewrite_manifests' },
]

/** Tells the health of a table from its facts. A pure function. */
export function health(
  facts: HealthFacts,
  settings: EffectiveSettings,
  costs: ScanCosts = defaultScanCosts,
): TableHealth {
  const actual = scanMicros(facts.now, costs)
  const lost = lossesOf(facts, costs)
  const ideal = actual - lost.reduce((sum, { micros }) => sum + micros, 0)
  const score = scoreOf(ideal, actual)
  const points = sharedOut(
    100 - score,
    lost.map(({ micros }) => micros),
  )
  const shown = lost.map(({ micros, code, action }, index) => ({
    code,
    seconds: micros / 1_000_000,
    points: points[index] ?? 0,
    action,
  }))
  const largestFirst = shown.filter(({ seconds }) => seconds > 0).toSorted((a, b) => b.seconds - a.seconds)
  const { actions, after } = recommendedActions(facts, settings.values, costs)
  const afterMicros = scanMicros(after, costs)
  return {
    score,
    band: bandOf(score),
    scanSeconds: actual / 1_000_000,
    idealScanSeconds: ideal / 1_000_000,
    losses: largestFirst,
    wastedBytes: wasteOf(facts),
    issues: issuesOf(facts, largestFirst, settings),
    recommendedActions: actions,
    scoreAfter: actions.length === 0 ? score : scoreOf(Math.min(ideal, afterMicros), afterMicros),
    scanSecondsAfter: afterMicros / 1_000_000,
    facts: facts.table,
    settings: settings.sources,
  }
}

function lossesOf({ now, ideal }: HealthFacts, costs: ScanCosts) {
  return losses.map(({ part, code, action }) => {
    const micros = Math.max(0, partMicros(now, part, costs) - partMicros(ideal, part, costs))
    return { code, action, micros }
  })
}

/** An empty table is as well as it can be. */
function scoreOf(idealMicros: number, actualMicros: number): number {
  return actualMicros === 0 ? 100 : Math.round((100 * idealMicros) / actualMicros)
}

function bandOf(score: number): TableHealth['band'] {
  if (score >= 90) return 'good'
  if (score >= 70) return 'fair'
  return score >= 40 ? 'poor' : 'bad'
}

/** Whole numbers in the proportion of the shares that add up to the total: the largest rests are rounded up. */
export function sharedOut(total: number, shares: readonly number[]): number[] {
  const sum = shares.reduce((a, b) => a + b, 0)
  if (sum === 0) return shares.map(() => 0)
  const exact = shares.map((share) => (total * share) / sum)
  const whole = exact.map(Math.floor)
  const missing = total - whole.reduce((a, b) => a + b, 0)
  const byRest = exact.map((value, index) => ({ index, rest: value - Math.floor(value) }))
  for (const { index } of byRest.toSorted((a, b) => b.rest - a.rest || a.index - b.index).slice(0, missing)) {
    whole[index] = (whole[index] ?? 0) + 1
  }
  return whole
}

function wasteOf({ plans: { snapshots, orphans } }: HealthFacts): WastedBytes {
  const expirable = snapshots?.bytes ?? 0
  return { total: expirable + (orphans?.bytes ?? 0), expirable, orphans: orphans?.bytes }
}
