import fc from 'fast-check'
import { expect } from 'vitest'
import {
  executeExpireSnapshots,
  executeRemoveOrphanFiles,
  executeRewriteDataFiles,
  executeRewriteManifests,
  executeRewritePositionDeletes,
  planExpireSnapshots,
  planRemoveOrphanFiles,
  planRewriteDataFiles,
  planRewriteManifests,
  planRewritePositionDeletes,
  schemaOf,
  type Catalog,
  type DuckDb,
  type GivenOptions,
  type LoadedTable,
  type RewriteDataFilesRequest,
} from '../../../src/index.ts'
import { dayMs } from '../lake.ts'

const rewriteOptions: readonly GivenOptions[] = [
  { 'min-input-files': 2 },
  { 'min-input-files': 2, 'delete-file-threshold': 1 },
  { 'min-input-files': 1, 'delete-file-threshold': 1, 'remove-dangling-deletes': true },
  { 'min-input-files': 2, 'partial-progress.enabled': true, 'max-concurrent-file-group-rewrites': 2 },
  { 'min-input-files': 2, 'use-starting-sequence-number': false, 'delete-file-threshold': 1 },
  { 'rewrite-all': true },
  { 'min-input-files': 2, 'max-file-group-input-files': 2, 'delete-file-threshold': 2 },
]

const rewriteData = fc.record({
  action: fc.constant('rewrite_data_files' as const),
  strategy: fc.constantFrom('binpack', 'binpack', 'binpack', 'sort', 'zorder'),
  options: fc.nat(rewriteOptions.length - 1),
  branch: fc.nat(5),
})
const rewriteDeletes = fc.record({
  action: fc.constant('rewrite_position_delete_files' as const),
  all: fc.boolean(),
  partial: fc.boolean(),
})
const rewriteManifests = fc.record({ action: fc.constant('rewrite_manifests' as const) })
const expiry = fc.record({
  action: fc.constant('expire_snapshots' as const),
  retainLast: fc.integer({ min: 1, max: 3 }),
  perCommit: fc.constantFrom(1, 100),
  cleanExpiredMetadata: fc.boolean(),
})
const orphans = fc.record({ action: fc.constant('remove_orphan_files' as const), quarantine: fc.boolean() })

export const anyAction = fc.oneof(
  { weight: 5, arbitrary: rewriteData },
  { weight: 3, arbitrary: rewriteDeletes },
  { weight: 2, arbitrary: rewriteManifests },
  { weight: 2, arbitrary: expiry },
  { weight: 1, arbitrary: orphans },
)
/** Those that do not look into data files. */
export const anyFileAction = fc.oneof(rewriteManifests, expiry, orphans)
export type Action = typeof anyAction extends fc.Arbitrary<infer T> ? T : never

/** What carries an action out: the catalog may be one that breaks. */
export interface Tools {
  readonly catalog: Catalog
  readonly duckDb: DuckDb
}

/** Plans an action, and carries the plan out. */
export async function runAction(table: LoadedTable, action: Action, { catalog, duckDb }: Tools): Promise<void> {
  const run = { catalog, pause: async (): Promise<void> => {} }
  switch (action.action) {
    case 'rewrite_data_files': {
      const plan = await planRewriteDataFiles(table, requestOf(table, action))
      await executeRewriteDataFiles(table, plan, run)
      return
    }
    case 'rewrite_position_delete_files': {
      const plan = await planRewritePositionDeletes(table, deletesRequest(action))
      await executeRewritePositionDeletes(table, plan, { ...run, duckDb })
      return
    }
    case 'rewrite_manifests':
      await executeRewriteManifests(table, await planRewriteManifests(table), run)
      return
    case 'expire_snapshots': {
      const plan = await planExpireSnapshots(table, expiryOptions(action))
      await executeExpireSnapshots(table, plan, { ...run, snapshotsPerCommit: action.perCommit, deleteBatchFiles: 3 })
      return
    }
    case 'remove_orphan_files': {
      const plan = await planRemoveOrphanFiles(catalog, table)
      const { quarantine } = action
      await executeRemoveOrphanFiles(table, plan, { ...run, quarantine, confirmShare: true, deleteBatchFiles: 3 })
    }
  }
}

/** Plans again right after a run: there is nothing to do. */
export async function expectNothingToDo(table: LoadedTable, action: Action, catalog: Catalog): Promise<void> {
  switch (action.action) {
    case 'rewrite_data_files': {
      const request = requestOf(table, action)
      // Such settings ask for more every time, as they do in Spark.
      if (request.options?.['rewrite-all'] === true || 'max-file-group-input-files' in (request.options ?? {})) return
      expect((await planRewriteDataFiles(table, request)).groups, 'groups of the next plan').toEqual([])
      return
    }
    case 'rewrite_position_delete_files': {
      if (action.all) return
      const { groups } = await planRewritePositionDeletes(table, deletesRequest(action))
      expect(groups, 'groups of the next plan').toEqual([])
      return
    }
    case 'rewrite_manifests':
      expect((await planRewriteManifests(table)).groups, 'groups of the next plan').toEqual([])
      return
    case 'expire_snapshots': {
      const again = await planExpireSnapshots(table, expiryOptions(action))
      expect(again).toMatchObject({ expired: [], removedRefs: [], files: {}, pendingLists: [] })
      expect(again.unused).toEqual({ schemaIds: [], specIds: [] })
      return
    }
    case 'remove_orphan_files':
      expect((await planRemoveOrphanFiles(catalog, table)).orphans, 'orphans of the next plan').toEqual([])
  }
}

function requestOf({ metadata }: LoadedTable, action: Action): RewriteDataFilesRequest {
  if (action.action !== 'rewrite_data_files') throw new Error('not a rewrite')
  const [first, second] = schemaOf(metadata).fields.map(({ name }) => name)
  const branches = [...metadata.refs].filter(([, { type }]) => type === 'branch').map(([name]) => name)
  const branch = branches[action.branch % Math.max(1, branches.length)]
  return {
    ...(action.strategy === 'sort' && { strategy: 'sort', sortOrder: `${second} desc nulls last, ${first}` }),
    ...(action.strategy === 'zorder' && { strategy: 'zorder', sortOrder: `zorder(${first}, ${second})` }),
    ...(branch !== undefined && { branch }),
    options: rewriteOptions[action.options] ?? {},
  }
}

function deletesRequest({ all, partial }: { readonly all: boolean; readonly partial: boolean }) {
  return { options: { 'min-input-files': 2, 'rewrite-all': all, 'partial-progress.enabled': partial } }
}

function expiryOptions(action: { readonly retainLast: number; readonly cleanExpiredMetadata: boolean }) {
  const { retainLast, cleanExpiredMetadata } = action
  return { retainLast, cleanExpiredMetadata, now: new Date(Date.now() + 30 * dayMs) }
}
