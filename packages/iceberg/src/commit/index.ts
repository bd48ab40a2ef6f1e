export { knowsSnapshot, showsUpdates } from './applied.ts'
export { commitTable, type BuildCommit, type BuiltCommit, type CommitOptions, type CommitOutcome } from './commit.ts'
export { retrySettingsOf, type RetrySettings } from './retry-settings.ts'
