import type {
  ExpireSnapshotsPlan,
  RemoveOrphanFilesPlan,
  RewriteDataFilesPlan,
  RewriteManifestsPlan,
  RewritePositionDeletesPlan,
} from '@fencepost/iceberg'
import type { ActionName } from './action-options.ts'

/** What an action would do, in numbers. */
export interface PlannedAction {
  readonly action: ActionName
  /** False when there is nothing to do. */
  readonly needed: boolean
  readonly message: string
  /** Files that are rewritten or deleted; manifests count as files where it is they that are rewritten. */
  readonly files: number
  readonly bytes: number
  readonly snapshots: number
  readonly groups: number
  /** Why the action cannot be done on this table; null when it can. */
  readonly refused: string | null
}

const sum = <T>(all: readonly T[], of: (one: T) => number) => all.reduce((total, one) => total + of(one), 0)

/** Counts a thing: "1 file", "2 files". */
export function counted(count: number, thing: string): string {
  return `${count} ${thing}${count === 1 ? '' : 's'}`
}

function plan(
  action: ActionName,
  numbers: Partial<Pick<PlannedAction, 'files' | 'bytes' | 'snapshots' | 'groups' | 'refused'>>,
  message: string,
): PlannedAction {
  const { files = 0, bytes = 0, snapshots = 0, groups = 0, refused = null } = numbers
  const needed = files + snapshots > 0 && refused === null
  const said = refused ?? (needed ? message : 'Nothing to do')
  return { action, needed, message: said, files, bytes, snapshots, groups, refused }
}

/** The plan of an action that cannot be done on this table. */
export function refusedPlan(action: ActionName, refused: string): PlannedAction {
  return plan(action, { refused }, refused)
}

export const planned = {
  rewriteDataFiles: (given: RewriteDataFilesPlan) =>
    plan(
      'rewrite_data_files',
      { files: given.files, bytes: given.bytes, groups: given.groups.length, refused: given.unsupported ?? null },
      `Rewrites ${counted(given.files, 'file')} into about ${given.expectedFiles}`,
    ),
  rewritePositionDeletes(given: RewritePositionDeletesPlan) {
    const files = sum(given.groups, (group) => group.files.length)
    const numbers = { files, bytes: sum(given.groups, (group) => group.bytes), groups: given.groups.length }
    return plan('rewrite_position_delete_files', numbers, `Rewrites ${counted(files, 'delete file')}`)
  },
  rewriteManifests(given: RewriteManifestsPlan) {
    const files = sum(given.groups, (group) => group.manifests.length)
    const into = sum(given.groups, (group) => group.expectedManifests)
    const numbers = { files, bytes: sum(given.groups, (group) => group.bytes), groups: given.groups.length }
    return plan('rewrite_manifests', numbers, `Rewrites ${counted(files, 'manifest')} into about ${into}`)
  },
  expireSnapshots(given: ExpireSnapshotsPlan) {
    const files = Object.values(given.files ?? {})
    const numbers = {
      snapshots: given.expired.length,
      files: sum(files, (one) => one.files),
      bytes: sum(files, (one) => one.bytes),
    }
    return plan('expire_snapshots', numbers, `Expires ${counted(numbers.snapshots, 'snapshot')}`)
  },
  removeOrphanFiles(given: RemoveOrphanFilesPlan, isConfirmed: boolean) {
    const files = given.orphans.length
    const isRefused = given.isSuspicious && !isConfirmed
    const refused = isRefused
      ? `${counted(files, 'orphan')} would be ${Math.round(given.orphanShare * 100)} % of all bytes; give confirm_share`
      : null
    const numbers = { files, bytes: given.orphanBytes, refused }
    return plan('remove_orphan_files', numbers, `Removes ${counted(files, 'file')} that nothing refers to`)
  },
}
