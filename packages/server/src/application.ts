import type { JobValue } from '@fencepost/client'
import type { Engine, Job, ListedJob, ListOptions, Logger, MigrationSet } from '@fencepost/engine'
import type { z } from 'zod'
import type { Endpoint } from './endpoint.ts'

/** A job's JSON on its way out. */
export type JobJson = Record<string, unknown>

/** One more query parameter of GET /jobs. */
export interface JobFilter {
  readonly schema: z.ZodType<string | undefined>
  readonly description: string
  /** What it means to the engine. Throw an ApiError for a value that cannot be. */
  readonly apply: (value: string) => Pick<ListOptions, 'operation' | 'queue' | 'lockKey'>
}

/** What goes on beside the requests. */
export interface Background {
  /** Ends it, and waits for what is under way. */
  close(): Promise<void>
}

/** What is added to the server by those who build on it. Its operations are those that the engine was opened with. */
export interface Application {
  readonly name: string
  /** The migrations of relations of its own. */
  readonly migrations?: readonly MigrationSet[]
  /** Routes beside the server's own; they get the same checks, access and documentation. */
  readonly endpoints?: (engine: Engine, present: Presenter) => readonly Endpoint[]
  /**
   * What the JSON of a job becomes; given what the server would send. Jobs of others are returned as they are. In a list a
   * job has no payload and result, except those that the caller, or `payloadInListsOf`, asks for.
   */
  readonly presentJob?: (json: JobJson, job: ListedJob) => JobJson
  /** Operations whose payload presentJob() needs in lists too. Their schemas must keep it small: lists are read whole. */
  readonly payloadInListsOf?: readonly string[]
  /** Query parameters that GET /jobs has beside its own. */
  readonly jobFilters?: Readonly<Record<string, JobFilter>>
  /** Begins what the application does by itself, once the server listens; it ends with the server. */
  readonly start?: (engine: Engine, logger: Logger) => Background
  /** Lines for /metrics in the text format of Prometheus. */
  readonly metrics?: () => string
}

/** Jobs as the API shows them. */
export interface Presenter {
  jobs(jobs: readonly Job[]): Promise<JobJson[]>
  /** Jobs in a list, with the values that are asked for. */
  summaries(jobs: readonly ListedJob[], include: readonly JobValue[]): Promise<JobJson[]>
  /** A job that has just been submitted, as it was accepted: pending, whatever has happened to it since. */
  accepted(job: Job): JobJson
}
