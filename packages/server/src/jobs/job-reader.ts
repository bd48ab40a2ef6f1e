import { Lookup, type Engine, type Job, type ListedJob } from '@fencepost/engine'
import { ApiError } from '../error.ts'
import { Turns } from '../turns.ts'

/*
 * Reading one job. Jobs that are asked for at the same time are read together, as long as their values are small; larger
 * ones are read one by one, a few at once: so memory does not grow with the number of callers.
 */

// About what Postgres keeps within a row.
const inlineBytes = 2_048
const largeAtOnce = 4

export class JobReader {
  readonly #engine: Engine
  readonly #listed: Lookup<ListedJob>
  readonly #large = new Turns(largeAtOnce)

  constructor(engine: Engine) {
    this.#engine = engine
    this.#listed = new Lookup((jobIds) => engine.getListed(jobIds, { inlineBytes }))
  }

  /** The job at an address, perhaps without its values; or a refusal. */
  async existing(jobId: string): Promise<ListedJob> {
    const job = await this.#listed.find(checkJobId(jobId))
    if (job === undefined) throw notFound(jobId)
    return job
  }

  /** The job at an address with its values, or a refusal. */
  whole(jobId: string, caller: string): Promise<Job> {
    return this.#read(jobId, (read) => this.#large.take(caller, read))
  }

  /** The same for a job that this request has changed, which is never refused for want of room. */
  changed(jobId: string, caller: string): Promise<Job> {
    return this.#read(jobId, (read) => this.#large.takeUnrefused(caller, read))
  }

  async #read(jobId: string, inTurn: (read: () => Promise<Job | undefined>) => Promise<Job | undefined>): Promise<Job> {
    const job = await this.existing(jobId)
    if (isWhole(job)) return job
    const large = await inTurn(() => this.#engine.get(job.jobId))
    if (large === undefined) throw notFound(jobId)
    return large
  }
}

function isWhole(job: ListedJob): job is Job {
  return job.payload !== undefined
}

const idPattern = /^([0-9a-f]{32}|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12})$/i

/** True for what can be an id; an address with anything else leads nowhere. */
export function isId(text: string): boolean {
  return idPattern.test(text)
}

export function checkJobId(text: string): string {
  if (!isId(text)) throw notFound(text)
  return text.toLowerCase().replaceAll('-', '')
}

export function notFound(jobId: string): ApiError {
  return new ApiError('job_not_found', `There is no job ${JSON.stringify(jobId.slice(0, 64))}, or it was deleted.`)
}
