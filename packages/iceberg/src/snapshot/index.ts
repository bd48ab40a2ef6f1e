export { changesBetween, type ChangesOptions, type FileChanges } from './changes-between.ts'
export type { AppliedDeletes, Delete } from './delete.ts'
export { manifestsOf, type ScannedTable } from './manifests-of.ts'
export type { SnapshotChoice } from './snapshot-of.ts'
