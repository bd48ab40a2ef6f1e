import type { NewPreview } from './bulk-act.ts'
import type { JobEvent } from './event.ts'
import { follow, type FollowOptions } from './follow.ts'
import type { ChildrenQuery, JobFilter, JobSummary, ListQuery, PipelineQuery, Submission } from './job.ts'
import { each, pages } from './pages.ts'
import { call, type CallOptions, type Connection, type RouteInput } from './request.ts'
import type { AnswerOf, Route } from './route.ts'
import { routes } from './routes.ts'
import type { NewSchedule, Schedule, SchedulesQuery } from './schedule.ts'
import type { DrainLevel } from './service.ts'
import type { NewToken } from './token.ts'
import { waitFor, type WaitOptions } from './wait-for.ts'

export interface ClientOptions {
  /** Where the server is: http://127.0.0.1:8080, also with a path in front of the routes. */
  url: string
  token?: string | undefined
  /** How long an answer may take before the call fails as unreachable; 60 seconds if left out. */
  timeoutMs?: number | undefined
  /** Instead of the global one. */
  fetch?: typeof globalThis.fetch | undefined
}

export interface SubmitCallOptions extends CallOptions {
  /** Makes repeating safe: the same key and submission get the first answer again for 24 hours. */
  idempotencyKey?: string | undefined
}

export type Client = ReturnType<typeof createClient>

const defaultTimeoutMs = 60_000

/** A client with one method for each route. What the server refuses is thrown as FencepostApiError. */
export function createClient(options: ClientOptions) {
  const connection: Connection = {
    url: options.url.replace(/\/+$/, ''),
    token: options.token,
    timeoutMs: options.timeoutMs ?? defaultTimeoutMs,
    fetch: options.fetch ?? ((...args) => globalThis.fetch(...args)),
  }
  const ask = async <R extends Route>(route: R, input: RouteInput<R>, more?: CallOptions): Promise<AnswerOf<R>> =>
    (await call(connection, route, input, more)).body
  return {
    ...jobCalls(connection, ask),
    ...serviceCalls(ask),
    ...pagedCalls(connection),
    /** Any route: an application's, say. */
    call: ask,
  }
}

type Ask = <R extends Route>(route: R, input: RouteInput<R>, more?: CallOptions) => Promise<AnswerOf<R>>

function jobCalls(connection: Connection, ask: Ask) {
  const of = (jobId: string) => ({ params: { job_id: jobId } })
  return {
    listJobs: (query: ListQuery = {}, more?: CallOptions) => ask(routes.listJobs, { query }, more),
    /** How many jobs fit: exact up to 10,000, above that about. */
    countJobs: (filter: JobFilter = {}, more?: CallOptions) => ask(routes.countJobs, { query: filter }, more),
    getJob: (jobId: string, more?: CallOptions) => ask(routes.getJob, of(jobId), more),
    deleteJob: (jobId: string, more?: CallOptions) => ask(routes.deleteJob, of(jobId), more),
    cancelJob: (jobId: string, more?: CallOptions) => ask(routes.cancelJob, of(jobId), more),
    recoverJob: (jobId: string, more?: CallOptions) => ask(routes.recoverJob, of(jobId), more),
    /** The new job. Calling it again while that one is unfinished answers with the same one. */
    runAgain: (jobId: string, more?: CallOptions) => ask(routes.runAgain, of(jobId), more),
    explainJob: (jobId: string, more?: CallOptions) => ask(routes.explainJob, of(jobId), more),
    jobChildren: (jobId: string, query: ChildrenQuery = {}, more?: CallOptions) =>
      ask(routes.jobChildren, { ...of(jobId), query }, more),
    jobEvents: (jobId: string, query: RouteInput<typeof routes.jobEvents>['query'] = {}, more?: CallOptions) =>
      ask(routes.jobEvents, { ...of(jobId), query }, more),
    /** The events of a job, past ones first, then live, until it has ended. Broken connections are made again. */
    events: (jobId: string, options: FollowOptions = {}) =>
      follow(connection, routes.jobEvents, { job_id: jobId }, options),
    /** The transitions of all jobs, from now on. */
    allEvents: (options: FollowOptions = {}) => follow(connection, routes.events, {}, options),
    /** The job, when it has ended. */
    waitFor: (jobId: string, options?: WaitOptions) => waitFor(connection, jobId, options),
    submitJob: (operation: string, submission: Submission = {}, { idempotencyKey, ...more }: SubmitCallOptions = {}) =>
      ask(
        routes.submitJob,
        {
          params: { name: operation },
          body: submission,
          ...(idempotencyKey === undefined ? {} : { headers: { 'idempotency-key': idempotencyKey } }),
        },
        more,
      ),
  }
}

/** Lists without their pages: the next one is asked for when it is needed. */
function pagedCalls(connection: Connection) {
  const of = (jobId: string) => ({ params: { job_id: jobId } })
  return {
    /** All jobs that fit, newest first. */
    eachJob: (query: ListQuery = {}, more?: CallOptions): AsyncGenerator<JobSummary, void> =>
      each(pages(connection, routes.listJobs, { query }, more), (page) => page),
    /** All children of a job, newest first. */
    eachChild: (jobId: string, query: ChildrenQuery = {}, more?: CallOptions): AsyncGenerator<JobSummary, void> =>
      each(pages(connection, routes.jobChildren, { ...of(jobId), query }, more), (page) => page),
    /** All jobs of a pipeline, oldest first. */
    eachPipelineJob: (
      pipelineId: string,
      query: PipelineQuery = {},
      more?: CallOptions,
    ): AsyncGenerator<JobSummary, void> =>
      each(
        pages(connection, routes.getPipeline, { params: { pipeline_id: pipelineId }, query }, more),
        ({ jobs }) => jobs,
      ),
    /** All schedules, by name. */
    eachSchedule: (query: SchedulesQuery = {}, more?: CallOptions): AsyncGenerator<Schedule, void> =>
      each(pages(connection, routes.listSchedules, { query }, more), (page) => page),
    /** All events of a job that are there, oldest first. */
    eachEvent: (
      jobId: string,
      query: RouteInput<typeof routes.jobEvents>['query'] = {},
      more?: CallOptions,
    ): AsyncGenerator<JobEvent, void> =>
      each(pages(connection, routes.jobEvents, { ...of(jobId), query }, more), (page) => page),
  }
}

function serviceCalls(ask: Ask) {
  return {
    listOperations: (more?: CallOptions) => ask(routes.listOperations, {}, more),
    getPipeline: (pipelineId: string, query: PipelineQuery = {}, more?: CallOptions) =>
      ask(routes.getPipeline, { params: { pipeline_id: pipelineId }, query }, more),
    abortPipeline: (pipelineId: string, more?: CallOptions) =>
      ask(routes.abortPipeline, { params: { pipeline_id: pipelineId } }, more),
    /** Counts the jobs of a filter; its token starts the act on them. */
    previewBulkAct: (body: NewPreview, more?: CallOptions) => ask(routes.previewBulkAct, { body }, more),
    startBulkAct: (token: string, more?: CallOptions) => ask(routes.startBulkAct, { body: { token } }, more),
    getBulkAct: (bulkActId: string, more?: CallOptions) =>
      ask(routes.getBulkAct, { params: { bulk_act_id: bulkActId } }, more),
    listBulkActs: (more?: CallOptions) => ask(routes.listBulkActs, {}, more),
    stopBulkAct: (bulkActId: string, more?: CallOptions) =>
      ask(routes.stopBulkAct, { params: { bulk_act_id: bulkActId } }, more),
    listSchedules: (query: SchedulesQuery = {}, more?: CallOptions) => ask(routes.listSchedules, { query }, more),
    getSchedule: (name: string, more?: CallOptions) => ask(routes.getSchedule, { params: { name } }, more),
    /** Makes the schedule of this name, or changes it. */
    putSchedule: (name: string, body: NewSchedule, more?: CallOptions) =>
      ask(routes.putSchedule, { params: { name }, body }, more),
    deleteSchedule: (name: string, more?: CallOptions) => ask(routes.deleteSchedule, { params: { name } }, more),
    pauseSchedule: (name: string, more?: CallOptions) => ask(routes.pauseSchedule, { params: { name } }, more),
    resumeSchedule: (name: string, more?: CallOptions) => ask(routes.resumeSchedule, { params: { name } }, more),
    listQueues: (more?: CallOptions) => ask(routes.listQueues, {}, more),
    pauseQueue: (name: string, more?: CallOptions) => ask(routes.pauseQueue, { params: { name } }, more),
    resumeQueue: (name: string, more?: CallOptions) => ask(routes.resumeQueue, { params: { name } }, more),
    listWorkers: (more?: CallOptions) => ask(routes.listWorkers, {}, more),
    getDrain: (more?: CallOptions) => ask(routes.getDrain, {}, more),
    setDrain: (level: DrainLevel, more?: CallOptions) => ask(routes.setDrain, { body: { level } }, more),
    listTokens: (more?: CallOptions) => ask(routes.listTokens, {}, more),
    createToken: (body: NewToken, more?: CallOptions) => ask(routes.createToken, { body }, more),
    revokeToken: (tokenId: string, more?: CallOptions) =>
      ask(routes.revokeToken, { params: { token_id: tokenId } }, more),
    healthz: (more?: CallOptions) => ask(routes.healthz, {}, more),
    readyz: (more?: CallOptions) => ask(routes.readyz, {}, more),
    metrics: (more?: CallOptions) => ask(routes.metrics, {}, more),
    openapi: (more?: CallOptions) => ask(routes.openapi, {}, more),
    root: (more?: CallOptions) => ask(routes.root, {}, more),
    docs: (more?: CallOptions) => ask(routes.docs, {}, more),
  }
}
