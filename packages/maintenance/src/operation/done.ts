import type {
  ExpireSnapshotsResult,
  RemoveOrphanFilesResult,
  RewriteDataFilesPlan,
  RewriteDataFilesResult,
  RewriteManifestsResult,
  RewritePositionDeletesResult,
} from '@fencepost/iceberg'
import { counted } from './planned.ts'

/** What an action has done. */
export interface DoneAction {
  readonly message: string
  /** What the step stores: plain numbers and ids. */
  readonly result: Readonly<Record<string, string | number | readonly string[]>>
  readonly snapshotIds: readonly string[]
  readonly deletedFiles: number
  /** Why it is a failure all the same; undefined for a success. What is refused is refused the next time as well. */
  readonly failure?: { readonly reason: string; readonly isRefusal: boolean }
}

/** Ids that a step keeps at most; an expiry may have a hundred thousand. */
const maxIds = 1_000

function unfinishedOf(unfinished: readonly { readonly why: string; readonly message?: string }[], committed: number) {
  const failed = unfinished.filter(({ why }) => why !== 'gone')
  const rest = failed.length === 0 ? '' : `; ${counted(failed.length, 'group')} not finished`
  const reason = failed.find(({ message }) => message !== undefined)?.message ?? 'commits of others were in the way'
  const isRefusal = failed.every(({ why }) => why === 'refused')
  return { rest, ...(failed.length > 0 && committed === 0 ? { failure: { reason, isRefusal } } : {}) }
}

export const done = {
  rewriteDataFiles(plan: RewriteDataFilesPlan, result: RewriteDataFilesResult): DoneAction {
    const { rewrittenDataFilesCount: rewritten, addedDataFilesCount: added, snapshotIds } = result
    const { rest, ...failed } = unfinishedOf(result.unfinished, rewritten)
    const nothing = plan.unsupported ?? 'Nothing to do'
    return {
      message: rewritten === 0 ? `${nothing}${rest}` : `Compacted ${counted(rewritten, 'file')} into ${added}${rest}`,
      snapshotIds,
      deletedFiles: 0,
      ...failed,
      result: {
        rewritten_data_files_count: rewritten,
        added_data_files_count: added,
        rewritten_bytes_count: result.rewrittenBytesCount,
        failed_data_files_count: result.failedDataFilesCount,
        removed_delete_files_count: result.removedDeleteFilesCount,
        snapshot_ids: snapshotIds.slice(-maxIds),
      },
    }
  },
  rewritePositionDeletes(result: RewritePositionDeletesResult): DoneAction {
    const { rewrittenDeleteFilesCount: rewritten, addedDeleteFilesCount: added, snapshotIds } = result
    const { rest, ...failed } = unfinishedOf(result.unfinished, rewritten)
    return {
      message:
        rewritten === 0 ? `Nothing to do${rest}` : `Rewrote ${counted(rewritten, 'delete file')} into ${added}${rest}`,
      snapshotIds,
      deletedFiles: 0,
      ...failed,
      result: {
        rewritten_delete_files_count: rewritten,
        added_delete_files_count: added,
        rewritten_bytes_count: result.rewrittenBytesCount,
        added_bytes_count: result.addedBytesCount,
        snapshot_ids: snapshotIds.slice(-maxIds),
      },
    }
  },
  rewriteManifests(result: RewriteManifestsResult): DoneAction {
    const { rewrittenManifestsCount: rewritten, addedManifestsCount: added, snapshotId } = result
    const snapshotIds = snapshotId === undefined ? [] : [snapshotId]
    return {
      message: rewritten === 0 ? 'Nothing to do' : `Rewrote ${counted(rewritten, 'manifest')} into ${added}`,
      snapshotIds,
      deletedFiles: 0,
      result: { rewritten_manifests_count: rewritten, added_manifests_count: added, snapshot_ids: snapshotIds },
    }
  },
  expireSnapshots(result: ExpireSnapshotsResult): DoneAction {
    const counts = {
      deleted_data_files_count: result.deletedDataFilesCount,
      deleted_position_delete_files_count: result.deletedPositionDeleteFilesCount,
      deleted_equality_delete_files_count: result.deletedEqualityDeleteFilesCount,
      deleted_manifest_files_count: result.deletedManifestFilesCount,
      deleted_manifest_lists_count: result.deletedManifestListsCount,
      deleted_statistics_files_count: result.deletedStatisticsFilesCount,
    }
    const deletedFiles = Object.values(counts).reduce((total, one) => total + one, 0)
    const expired = result.expiredSnapshotIds
    const failed = failedDeletes(result.failedDeletes.length)
    return {
      message:
        expired.length === 0 ? `Nothing to do${failed}` : `Expired ${counted(expired.length, 'snapshot')}${failed}`,
      snapshotIds: [],
      deletedFiles,
      result: {
        ...counts,
        deleted_bytes: result.deletedBytes,
        expired_snapshots_count: expired.length,
        expired_snapshot_ids: expired.slice(-maxIds),
        failed_deletes_count: result.failedDeletes.length,
      },
    }
  },
  removeOrphanFiles(result: RemoveOrphanFilesResult): DoneAction {
    const failed = failedDeletes(result.failedDeletes.length)
    const verb = result.quarantineId === undefined ? 'Removed' : 'Quarantined'
    const { removedFiles } = result
    return {
      message:
        removedFiles === 0 ? `Nothing to do${failed}` : `${verb} ${counted(removedFiles, 'orphan file')}${failed}`,
      snapshotIds: [],
      deletedFiles: removedFiles,
      result: {
        removed_files_count: removedFiles,
        removed_bytes: result.removedBytes,
        kept_files_count: result.keptFiles,
        failed_deletes_count: result.failedDeletes.length,
        ...(result.quarantineId === undefined ? {} : { quarantine_id: result.quarantineId }),
      },
    }
  },
}

function failedDeletes(count: number): string {
  return count === 0 ? '' : `; ${counted(count, 'file')} could not be deleted`
}
