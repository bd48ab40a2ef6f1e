import type { HealthLoss, LossCode } from './health.ts'
import type { HealthFacts } from './health-facts.ts'
import type { EffectiveSettings } from './health-settings.ts'

export type IssueCode = LossCode | 'old_snapshots' | 'orphan_files' | 'unsupported' | 'gc_disabled' | 'setting_invalid'

export interface HealthIssue {
  readonly code: IssueCode
  readonly severity: 'critical' | 'warning' | 'info'
  readonly message: string
  readonly evidence: Readonly<Record<string, number | string>>
}

/** Points from which a loss is critical. */
const criticalPoints = 30

/** What is wrong with a table. A loss below the points that an action has to bring is none. */
export function issuesOf(
  facts: HealthFacts,
  losses: readonly HealthLoss[],
  { values, invalid }: EffectiveSettings,
): HealthIssue[] {
  const issues: HealthIssue[] = []
  for (const { code, points, seconds } of losses) {
    if (points === 0 || points < values.minPoints) continue
    const { message, evidence } = described(code, facts)
    const severity = points >= criticalPoints ? 'critical' : 'warning'
    issues.push({ code, severity, message, evidence: { ...evidence, seconds, points } })
  }
  const { snapshots, orphans } = facts.plans
  if (snapshots === undefined) {
    const message = 'The table says that its files must not be deleted (gc.enabled): snapshots and orphans stay.'
    issues.push({ code: 'gc_disabled', severity: 'info', message, evidence: {} })
  } else if (snapshots.expired >= values.minExpiredSnapshots) {
    const message = `${snapshots.expired} of ${facts.table.snapshots.count} snapshots are too old to be of use.`
    const evidence = { expired: snapshots.expired, snapshots: facts.table.snapshots.count, bytes: snapshots.bytes }
    issues.push({ code: 'old_snapshots', severity: 'warning', message, evidence })
  }
  if (orphans !== undefined && orphans.files > 0) {
    const many = orphans.isSuspicious ? ' That is a large share: look at the list before they are removed.' : ''
    const message = `${orphans.files} files in the table's folder belong to no snapshot.${many}`
    const evidence = { files: orphans.files, bytes: orphans.bytes, share: orphans.share }
    issues.push({ code: 'orphan_files', severity: 'warning', message, evidence })
  }
  if (facts.unsupported !== undefined) {
    issues.push({ code: 'unsupported', severity: 'info', message: facts.unsupported, evidence: {} })
  }
  for (const { property, value } of invalid) {
    const message = `The table property ${property} is "${value}", which is no value of it. It was passed over.`
    issues.push({ code: 'setting_invalid', severity: 'warning', message, evidence: { property, value } })
  }
  return issues
}

function described(code: LossCode, { now, ideal, table }: HealthFacts): Pick<HealthIssue, 'message' | 'evidence'> {
  const { deleteFiles } = table
  switch (code) {
    case 'small_files':
      return {
        message: `${now.dataFiles} data files hold what would fit into ${ideal.dataFiles}.`,
        evidence: { files: now.dataFiles, idealFiles: ideal.dataFiles, small: table.dataFiles.small },
      }
    case 'deleted_rows':
      return {
        message: 'Readers read many rows only to leave them out: they are deleted.',
        evidence: { deletedBytes: Math.round(now.deletedBytes), liveBytes: Math.round(now.liveBytes) },
      }
    case 'equality_deletes':
      return {
        message: `${deleteFiles.equalityFiles} files of equality deletes are compared with ${now.equalityDeletes} data files in all.`,
        evidence: { files: deleteFiles.equalityFiles, comparisons: now.equalityDeletes },
      }
    case 'deletion_vectors':
      return {
        message: `${now.deletionVectors} data files have a deletion vector.`,
        evidence: { vectors: now.deletionVectors, deletedRows: deleteFiles.vectorDeletes },
      }
    case 'position_deletes':
      return {
        message: `${now.positionDeleteFiles} files of position deletes have to be read.`,
        evidence: { files: now.positionDeleteFiles, deletedRows: deleteFiles.positionDeletes },
      }
    case 'manifests':
      return {
        message: `${now.manifests} manifests hold what would fit into ${ideal.manifests}.`,
        evidence: { manifests: now.manifests, idealManifests: ideal.manifests },
      }
  }
}
