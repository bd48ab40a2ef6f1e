export { Attempt, type AbortReason, type FenceHeld, type Written } from './attempt/attempt.ts'
export type { EngineClaimOptions } from './attempt/claims.ts'
export type { EmitOptions, Level, Progress } from './attempt/emit.ts'
export type { Outcome } from './attempt/settle.ts'
export type { Step, StepResult } from './attempt/step.ts'
export type { TransactionClient } from './attempt/transaction.ts'
export type { Act, BulkAct } from './bulk/bulk-act.ts'
export type { BulkActs, Preview, Started } from './bulk/bulk-acts.ts'
export type { CallerClient, Db, EngineDatabase, PackageDb } from './database/database.ts'
export { migrate, schemaVersion, type Migration, type SchemaVersion } from './database/migrate.ts'
export type { MigrationSet } from './database/migration-set.ts'
export { relationOf } from './database/relations.ts'
export { join, sql, type Sql } from './database/sql.ts'
export { openEmbeddedPostgres, type EmbeddedPostgres, type EmbeddedPostgresOptions } from './embedded/index.ts'
export { Engine, type Aborted, type ClaimAnswer, type EngineSubmitOptions, type SubmitItem } from './engine.ts'
export { errorCodes, FencepostError, PermanentError, RetryLater, type ErrorCode } from './errors.ts'
export type { Json } from './json.ts'
export type { Cancelled } from './lifecycle/cancel.ts'
export type { Claimed } from './lifecycle/claim.ts'
export { child, defer, Defer, type Child, type DeferOptions, type FailWhen } from './lifecycle/defer.ts'
export type { Deleted } from './lifecycle/delete.ts'
export type { Drain, DrainLevel } from './lifecycle/drain.ts'
export type { Swept, SweepOptions } from './lifecycle/sweep.ts'
export type { Fence, Settled } from './lifecycle/outcome.ts'
export type { Queue } from './lifecycle/queues.ts'
export type { Recovered } from './lifecycle/recover.ts'
export type { RanAgain } from './lifecycle/run-again.ts'
export type { SubmitOptions } from './lifecycle/submission.ts'
export type { Submitted } from './lifecycle/submit.ts'
export type { Logger } from './logger.ts'
export { Lookup } from './lookup.ts'
export { openEngine } from './open.ts'
export {
  operation,
  type Operation,
  type OperationOptions,
  type RetryPolicy,
  type Run,
  type Schema,
} from './operation.ts'
export type { EngineOptions } from './options.ts'
export type { Depth } from './read/depth.ts'
export type { EndedJobs } from './read/ended.ts'
export type { DatabaseState, EventFeed } from './read/event-feed.ts'
export type { EventPage, JobEvent } from './read/events.ts'
export type { Explanation, Reason } from './read/explain.ts'
export type { Job, JobStatus, JobSummary, ListedJob } from './read/job.ts'
export type { JobCount } from './read/count.ts'
export type { JobFilter } from './read/filter.ts'
export type { JobPage, JobValue, ListOptions, PageOptions } from './read/list.ts'
export { pipelineStatus, type Pipeline, type PipelinePage, type PipelineStatus } from './read/pipeline.ts'
export type { Waited, WaitOptions } from './read/waited.ts'
export { type ScheduleOptions } from './schedules/change.ts'
export type {
  CatchUp,
  Overlap,
  Schedule,
  ScheduleOutcome,
  SchedulePage,
  SchedulePageOptions,
} from './schedules/schedule.ts'
export type { Schedules } from './schedules/schedules.ts'
export type { SubmittedDue } from './schedules/submit-due.ts'
export { version } from './version.ts'
export { channelOf, type Notice, type WakeUpTransport } from './wake.ts'
export { exitCodeOf, type WorkedOnce, type WorkOnceOptions } from './worker/once.ts'
export { type WorkOptions } from './worker/options.ts'
export { rabbitMq, type RabbitMqOptions } from './worker/rabbitmq/rabbit-mq.ts'
export type { WorkerInfo } from './worker/registry.ts'
export { runWorker, type RunWorkerOptions } from './worker/run-worker.ts'
export { stopOnSignals, type StopOnSignals } from './worker/stop-on-signals.ts'
export type { WakeUp, WakeUpListener } from './worker/wake-up.ts'
