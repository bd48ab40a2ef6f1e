export { executeRewriteDataFiles, type RewriteDataFilesResult } from './execute.ts'
export {
  rewriteDataFilesOptions,
  type RewriteDataFilesRequest,
  type RewriteOptionValues,
  type RewriteSettings,
  type SizeLimits,
} from './options.ts'
export type { UnfinishedGroup } from './outcomes.ts'
export {
  planRewriteDataFiles,
  type LeftOut,
  type LeftOutReason,
  type PlannedFile,
  type RewriteDataFilesPlan,
  type RewriteGroup,
} from './plan.ts'
