export {
  executeRemoveOrphanFiles,
  removeOrphanFiles,
  type RemoveOrphanFilesResult,
  type RemoveOrphanFilesRun,
} from './execute.ts'
export type { TablesChecked } from './locations.ts'
export type { OrphanSettings, RemoveOrphanFilesOptions } from './options.ts'
export { planRemoveOrphanFiles, type OrphanFile, type RemoveOrphanFilesPlan } from './plan.ts'
export {
  listQuarantines,
  purgeQuarantine,
  restoreQuarantine,
  type QuarantineSummary,
  type Restored,
} from './quarantine.ts'
