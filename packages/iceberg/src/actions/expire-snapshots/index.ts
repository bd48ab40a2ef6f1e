export {
  executeExpireSnapshots,
  expireSnapshots,
  type ExpireSnapshotsResult,
  type ExpireSnapshotsRun,
} from './execute.ts'
export type { ExpireSettings, ExpireSnapshotsOptions } from './options.ts'
export { planExpireSnapshots, type ExpireSnapshotsPlan } from './plan.ts'
