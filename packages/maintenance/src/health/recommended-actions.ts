import type { MaintenanceAction } from './health.ts'
import type { HealthFacts } from './health-facts.ts'
import type { HealthSettings } from './health-settings.ts'
import { scanMicros, type ScanCosts, type ScanShape } from './scan-cost.ts'

/** An action that is worth its while, and what it would bring. */
export interface RecommendedAction {
  readonly action: MaintenanceAction
  readonly reason: string
  /** To be given to the action. */
  readonly options: Readonly<Record<string, number | boolean>>
  readonly saves: {
    /** Of one full scan. */
    readonly seconds: number
    /** Of a full scan now, as the losses have them. */
    readonly points: number
    readonly files: number
    readonly bytes: number
  }
}

interface Step {
  readonly recommended: Omit<RecommendedAction, 'saves'>
  readonly after: ScanShape
  readonly files: number
  readonly bytes: number
}

/**
 * The actions that are worth doing, in their order, and what a scan reads after them. Whether one is worth it is told by
 * what a scan would take after all of them, so that none becomes worth it only because another was done.
 */
export function recommendedActions(
  facts: HealthFacts,
  settings: HealthSettings,
  costs: ScanCosts,
): { actions: RecommendedAction[]; after: ScanShape } {
  const now = scanMicros(facts.now, costs)
  const final = scanMicros(doAll(facts, () => true).after, costs)
  const done = doAll(facts, ({ after }, before) => {
    const saved = scanMicros(before, costs) - scanMicros(after, costs)
    return saved > 0 && (100 * saved) / (final + saved) >= settings.minPoints
  })
  const actions = done.steps.map(({ step, before }): RecommendedAction => {
    const saved = scanMicros(before, costs) - scanMicros(step.after, costs)
    const { files, bytes } = step
    const saves = {
      seconds: saved / 1_000_000,
      points: Math.round((100 * saved) / now),
      files,
      bytes: Math.round(bytes),
    }
    return { ...step.recommended, saves }
  })
  return { actions: [...actions, ...deletingActions(facts, settings)], after: done.after }
}

/** Does every step that is wanted, each after those before it. */
function doAll(facts: HealthFacts, isWanted: (step: Step, before: ScanShape) => boolean) {
  const steps: { step: Step; before: ScanShape }[] = []
  let shape = facts.now
  for (const stepOf of facts.unsupported === undefined ? rewrites : rewrites.slice(1)) {
    const step = stepOf(facts, shape)
    if (step === undefined || !isWanted(step, shape)) continue
    steps.push({ step, before: shape })
    shape = step.after
  }
  return { steps, after: shape }
}

const rewrites = [rewriteData, rewritePositionDeletes, rewriteManifests]

function rewriteData({ plans: { dataFiles }, now }: HealthFacts, shape: ScanShape): Step | undefined {
  if (dataFiles.files === 0) return undefined
  const fewer = shape.dataFiles - dataFiles.after.dataFiles
  const deletes =
    now.equalityDeletes + now.deletionVectors + now.positionDeleteFiles > 0
      ? ' Deleted rows are left out on the way.'
      : ''
  return {
    recommended: {
      action: 'rewrite_data_files',
      reason:
        fewer > 0
          ? `${dataFiles.files} files would become ${dataFiles.files - fewer}.${deletes}`
          : `${dataFiles.files} files would be written without their deleted rows.`,
      options: dataFiles.options,
    },
    after: dataFiles.after,
    files: fewer,
    bytes: shape.deletedBytes - dataFiles.after.deletedBytes,
  }
}

function rewritePositionDeletes({ plans: { positionDeletes } }: HealthFacts, shape: ScanShape): Step | undefined {
  const filesAfter = Math.min(shape.positionDeleteFiles, positionDeletes.filesAfter)
  if (positionDeletes.files === 0 || filesAfter >= shape.positionDeleteFiles) return undefined
  return {
    recommended: {
      action: 'rewrite_position_delete_files',
      reason: `${shape.positionDeleteFiles} files of position deletes would become ${filesAfter}.`,
      options: {},
    },
    after: { ...shape, positionDeleteFiles: filesAfter },
    files: shape.positionDeleteFiles - filesAfter,
    bytes: 0,
  }
}

function rewriteManifests({ plans: { manifests } }: HealthFacts, shape: ScanShape): Step | undefined {
  const after = Math.min(shape.manifests, manifests.manifestsAfter)
  if (manifests.manifests === 0 || after >= shape.manifests) return undefined
  return {
    recommended: {
      action: 'rewrite_manifests',
      reason: `${shape.manifests} manifests would become ${after}.`,
      options: {},
    },
    after: { ...shape, manifests: after },
    files: shape.manifests - after,
    bytes: 0,
  }
}

/** Those that bring back space, and no time. */
function deletingActions(
  { plans: { snapshots, orphans } }: HealthFacts,
  settings: HealthSettings,
): RecommendedAction[] {
  const actions: RecommendedAction[] = []
  if (snapshots !== undefined && snapshots.expired >= settings.minExpiredSnapshots) {
    const days = Math.round((settings.maxSnapshotAgeMs / 86_400_000) * 10) / 10
    actions.push({
      action: 'expire_snapshots',
      reason: `${snapshots.expired} snapshots are older than ${days} days.`,
      options: {},
      saves: { seconds: 0, points: 0, files: snapshots.files, bytes: snapshots.bytes },
    })
  }
  if (orphans !== undefined && orphans.files > 0) {
    actions.push({
      action: 'remove_orphan_files',
      reason: `No snapshot knows ${orphans.files} files.`,
      options: {},
      saves: { seconds: 0, points: 0, files: orphans.files, bytes: orphans.bytes },
    })
  }
  return actions
}
