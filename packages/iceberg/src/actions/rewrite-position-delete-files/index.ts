export {
  executeRewritePositionDeletes,
  type RewritePositionDeletesResult,
  type RewritePositionDeletesRun,
  type UnfinishedDeletes,
} from './execute.ts'
export {
  rewritePositionDeletesOptions,
  type RewritePositionDeletesOption,
  type RewritePositionDeletesOptions,
  type RewritePositionDeletesSettings,
} from './options.ts'
export {
  planRewritePositionDeletes,
  type DeleteGroup,
  type DeleteGroupReason,
  type DeletesLeftOut,
  type PlannedDeletes,
  type RewritePositionDeletesPlan,
  type RewritePositionDeletesRequest,
} from './plan.ts'
