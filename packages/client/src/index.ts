export { act, bulkAct, preview, type Act, type BulkAct, type NewPreview, type Preview } from './bulk-act.ts'
export { createClient, type Client, type ClientOptions, type SubmitCallOptions } from './client.ts'
export { apiErrors, errorAnswer, FencepostApiError, isApiErrorCode, type ApiErrorCode } from './errors.ts'
export { jobEvent, streamClosed, streamClosedEvent, terminalEvents, type JobEvent, type StreamClosed } from './event.ts'
export { explanation, type Explanation } from './explanation.ts'
export type { FollowOptions } from './follow.ts'
export {
  job,
  jobCount,
  jobFilter,
  jobStatus,
  jobSummary,
  jobValue,
  listQuery,
  submission,
  type ChildrenQuery,
  type Job,
  type JobCount,
  type JobFilter,
  type JobStatus,
  type JobSummary,
  type JobValue,
  type ListQuery,
  type PipelineQuery,
  type Submission,
} from './job.ts'
export { queueName } from './values.ts'
export type { CallOptions } from './request.ts'
export { errorsOf, type AnswerOf, type BodyOf, type ParamsOf, type QueryOf, type Route } from './route.ts'
export { routes, type RouteName, type Routes } from './routes.ts'
export { catchUp, overlap, schedule, type NewSchedule, type Schedule, type SchedulesQuery } from './schedule.ts'
export {
  drain,
  drainLevel,
  operation,
  pipeline,
  queue,
  worker,
  type Drain,
  type DrainLevel,
  type Health,
  type Operation,
  type Pipeline,
  type Queue,
  type Readiness,
  type Worker,
} from './service.ts'
export {
  catalogState,
  listedTable,
  maintenanceAction,
  maintenanceJob,
  maintenanceRequest,
  plannedAction,
  tableRoutes,
  type CatalogState,
  type ListedTable,
  type MaintenanceAction,
  type MaintenanceJob,
  type MaintenanceRequest,
  type PlannedAction,
} from './table.ts'
export {
  allows,
  createdToken,
  role,
  roles,
  token,
  type CreatedToken,
  type NewToken,
  type Role,
  type Token,
} from './token.ts'
export { WaitTimeoutError, type WaitOptions } from './wait-for.ts'
