import {
  executeExpireSnapshots,
  executeRewriteDataFiles,
  executeRewriteManifests,
  executeRewritePositionDeletes,
  planExpireSnapshots,
  planRemoveOrphanFiles,
  planRewriteDataFiles,
  planRewriteManifests,
  planRewritePositionDeletes,
  removeOrphanFiles,
  type ActionRun,
  type Catalog,
  type LoadedTable,
} from '@fencepost/iceberg'
import { before, effectiveSettings } from '../health/health-settings.ts'
import type { ActionName, ActionOptions } from './action-options.ts'
import { planned, type PlannedAction } from './planned.ts'
import { done, type DoneAction } from './done.ts'

/*
 * The five actions behind one interface: what each would do to a table, and doing it. Every action plans again right
 * before it runs, on the table as the one before has left it.
 */

export interface Action {
  /** Reads metadata and lists files; changes nothing. */
  readonly plan: (where: Where) => Promise<PlannedAction>
  readonly run: (where: Where, run: ActionRun, onPlanned: (plan: PlannedAction) => Promise<void>) => Promise<DoneAction>
}

export interface Where {
  readonly catalog: Catalog
  readonly table: LoadedTable
  readonly options: ActionOptions
  readonly signal?: AbortSignal
}

const rewriteDataFiles: Action = {
  plan: async (where) => planned.rewriteDataFiles(await planData(where)),
  async run(where, run, onPlanned) {
    const plan = await planData(where)
    await onPlanned(planned.rewriteDataFiles(plan))
    return done.rewriteDataFiles(plan, await executeRewriteDataFiles(where.table, plan, run))
  },
}

async function planData({ table, options }: Where) {
  const { strategy, sort_order: sortOrder, ...rest } = options.rewrite_data_files ?? {}
  return planRewriteDataFiles(table, {
    ...(strategy === undefined ? {} : { strategy }),
    ...(sortOrder === undefined ? {} : { sortOrder }),
    options: rest,
  })
}

const rewritePositionDeleteFiles: Action = {
  plan: async (where) => planned.rewritePositionDeletes(await planDeletes(where)),
  async run(where, run, onPlanned) {
    const plan = await planDeletes(where)
    await onPlanned(planned.rewritePositionDeletes(plan))
    return done.rewritePositionDeletes(await executeRewritePositionDeletes(where.table, plan, run))
  },
}

async function planDeletes({ table, options, signal }: Where) {
  const given = options.rewrite_position_delete_files ?? {}
  return planRewritePositionDeletes(table, { options: given, ...(signal === undefined ? {} : { signal }) })
}

const rewriteManifests: Action = {
  plan: async (where) => planned.rewriteManifests(await planManifests(where)),
  async run(where, run, onPlanned) {
    const plan = await planManifests(where)
    await onPlanned(planned.rewriteManifests(plan))
    return done.rewriteManifests(await executeRewriteManifests(where.table, plan, run))
  },
}

async function planManifests({ table, options }: Where) {
  const specId = options.rewrite_manifests?.spec_id
  return planRewriteManifests(table, specId === undefined ? {} : { specId })
}

const expireSnapshots: Action = {
  plan: async (where) => planned.expireSnapshots(await planExpiry(where, true)),
  async run(where, run, onPlanned) {
    const plan = await planExpiry(where, false)
    await onPlanned(planned.expireSnapshots(plan))
    return done.expireSnapshots(await executeExpireSnapshots(where.table, plan, run))
  },
}

async function planExpiry({ table, options, signal }: Where, countFiles: boolean) {
  const given = options.expire_snapshots ?? {}
  const { maxSnapshotAgeMs, minSnapshotsToKeep } = effectiveSettings(table.metadata.properties).values
  return planExpireSnapshots(table, {
    countFiles,
    olderThan: given.older_than === undefined ? before(new Date(), maxSnapshotAgeMs) : new Date(given.older_than),
    retainLast: given.retain_last ?? minSnapshotsToKeep,
    ...(given.clean_expired_metadata === undefined ? {} : { cleanExpiredMetadata: given.clean_expired_metadata }),
    ...(given.writer_progress_ms === undefined ? {} : { writerProgressMs: given.writer_progress_ms }),
    ...(signal === undefined ? {} : { signal }),
  })
}

const removeOrphans: Action = {
  plan: async (where) =>
    planned.removeOrphanFiles(
      await planRemoveOrphanFiles(where.catalog, where.table, orphanOptions(where)),
      where.options.remove_orphan_files?.confirm_share === true,
    ),
  async run(where, run) {
    const { confirm_share: confirmShare = false, quarantine = false } = where.options.remove_orphan_files ?? {}
    // In one go: a plan by itself would list the folder twice.
    const removed = await removeOrphanFiles(where.table, orphanOptions(where), { ...run, confirmShare, quarantine })
    return done.removeOrphanFiles(removed)
  },
}

function orphanOptions({ table, options, signal }: Where) {
  const given = options.remove_orphan_files ?? {}
  const { orphanAgeMs } = effectiveSettings(table.metadata.properties).values
  return {
    olderThan: given.older_than === undefined ? before(new Date(), orphanAgeMs) : new Date(given.older_than),
    ...(given.prefix_mismatch_mode === undefined ? {} : { prefixMismatchMode: given.prefix_mismatch_mode }),
    ...(given.max_orphan_share === undefined ? {} : { maxOrphanShare: given.max_orphan_share }),
    ...(signal === undefined ? {} : { signal }),
  }
}

export const actions: Readonly<Record<ActionName, Action>> = {
  rewrite_data_files: rewriteDataFiles,
  rewrite_position_delete_files: rewritePositionDeleteFiles,
  rewrite_manifests: rewriteManifests,
  expire_snapshots: expireSnapshots,
  remove_orphan_files: removeOrphans,
}
