export { writeDataFiles, type Rows, type WriteFilesOptions } from './write-files.ts'
export { writeRelation, type Relation } from './write-relation.ts'
export {
  buildSnapshot,
  type BuildSnapshotOptions,
  type RewrittenManifests,
  type SnapshotChange,
} from './build-snapshot.ts'
export type { RemovedFile } from './filter-manifests.ts'
export { SnapshotWork } from './snapshot-work.ts'
export type { Positions } from './position-deletes.ts'
export type { Replaced } from './overwrite.ts'
