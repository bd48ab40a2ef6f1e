import { checkKey } from '../check.ts'
import type { Context } from '../context.ts'
import { raw, sql } from '../database/sql.ts'
import { FencepostError } from '../errors.ts'
import { checkId } from '../ids.ts'
import type { JobFilter } from '../read/filter.ts'
import { getListedJobs, type ListedJob } from '../read/job.ts'
import { advance, growth } from './advance.ts'
import { bulkActColumns, bulkActFromRow, getBulkAct, listBulkActs, statusesOfAct } from './bulk-act.ts'
import type { Act, BulkAct, BulkActRow } from './bulk-act.ts'
import { matchingJobs } from './matching.ts'

/** What an act would be done to. */
export interface Preview {
  /** Starts the act, on exactly this filter, within a minute. */
  token: string
  act: Act
  count: number
  /** Up to ten of the jobs, those that would be first. */
  sample: ListedJob[]
  expiresAt: string
}

export type Started =
  | { started: true; bulkAct: BulkAct }
  | { started: false; why: 'token_unknown' | 'token_expired' }
  /** The jobs that fit are by more than a tenth more than were previewed. */
  | { started: false; why: 'grown'; previewed: number; count: number }

const validMs = 60_000
const sampleSize = 10
const countBatch = 10_000

/** Acts on all jobs of a filter: previewed, started, and done in batches by whichever process comes to it. */
export class BulkActs {
  readonly #context: Context
  #running: Promise<void> | undefined
  #again = false

  constructor(context: Context) {
    this.#context = context
  }

  /** Counts what the act would be done to, and keeps the filter under a token. */
  async preview(act: Act, filter: JobFilter, options: { by?: string } = {}): Promise<Preview> {
    if (!Object.hasOwn(statusesOfAct, act)) {
      throw new FencepostError('options_invalid', `act is ${String(act)}; give run_again, cancel or delete.`)
    }
    const { database: db, limits } = this.#context
    const { t } = db
    const by = checkKey(options.by, 'by')
    // Ids of jobs that were submitted together run a little ahead of the clock.
    const [bound] = await db.query<{ job_id: string }>(
      'bulk.bound',
      sql`select ${t.newJobId}(${t.now} + interval '1 second', 0) as job_id`,
    )
    const beforeJobId = bound?.job_id ?? ''
    const { count, first } = await this.#count({ act, filter, beforeJobId })
    const [made] = await db.query<BulkActRow & { expires_at: string }>(
      'bulk.preview',
      sql`with old as (
            delete from ${t.bulkActs}
             where (state = 'previewed' and previewed_at < ${t.now} - interval '1 hour')
                or ended_at < ${t.now} - ${limits.retentionMs}::bigint * interval '1 millisecond'
          )
          insert into ${t.bulkActs} (bulk_act_id, act, filter, before_job_id, previewed_count, previewed_at, submitted_by)
          values (gen_random_uuid(), ${act}, ${JSON.stringify(filter)}::jsonb, ${beforeJobId}::uuid, ${count}::bigint,
                  ${t.now}, ${by ?? null})
          returning ${bulkActColumns}, previewed_at + ${validMs} * interval '1 millisecond' as expires_at`,
    )
    const { bulk_act_id: token, expires_at: expiresAt } = made as BulkActRow & { expires_at: string }
    const jobs = await getListedJobs(db, first, 0)
    return { token, act, count, sample: first.flatMap((jobId) => jobs.get(jobId) ?? []), expiresAt }
  }

  /** Starts what was previewed. A token that has started its act answers with that act. */
  async start(token: string, options: { by?: string } = {}): Promise<Started> {
    const { database: db } = this.#context
    const { t } = db
    const [id, by] = [checkId(token, 'token'), checkKey(options.by, 'by')]
    const [row] = await db.query<BulkActRow>(
      'bulk.previewed',
      sql`select ${bulkActColumns} from ${t.bulkActs} where bulk_act_id = ${id}`,
    )
    if (row === undefined) return { started: false, why: 'token_unknown' }
    if (row.state !== 'previewed') return { started: true, bulkAct: bulkActFromRow(row) }
    const previewed = Number(row.previewed_count)
    const { count } = await this.#count({ ...row, beforeJobId: row.before_job_id })
    if (count > previewed * growth) return { started: false, why: 'grown', previewed, count }
    await db.query(
      'bulk.start',
      sql`update ${t.bulkActs}
             set state = 'running', started_at = ${t.now}, submitted_by = coalesce(${by ?? null}, submitted_by)
           where bulk_act_id = ${id} and state = 'previewed'
             and previewed_at > ${t.now} - ${validMs} * interval '1 millisecond'`,
    )
    const bulkAct = await getBulkAct(db, id) // somebody else may have started it
    if (bulkAct === undefined || bulkAct.state === 'previewed') return { started: false, why: 'token_expired' }
    void this.resume()
    return { started: true, bulkAct }
  }

  /** Undefined where there is none, or it was only previewed. */
  async get(bulkActId: string): Promise<BulkAct | undefined> {
    const found = await getBulkAct(this.#context.database, checkId(bulkActId, 'bulk act id'))
    return found?.state === 'previewed' ? undefined : found
  }

  /** The hundred that were started last. */
  async list(): Promise<BulkAct[]> {
    return listBulkActs(this.#context.database)
  }

  /** Ends an act after the batch that is under way. False where it is not running. */
  async stop(bulkActId: string): Promise<boolean> {
    const { database: db } = this.#context
    const stopped = await db.query(
      'bulk.stop',
      sql`update ${db.t.bulkActs} set state = 'stopped', ended_at = ${db.t.now}
           where bulk_act_id = ${checkId(bulkActId, 'bulk act id')} and state = 'running' returning bulk_act_id`,
    )
    return stopped.length > 0
  }

  /** Does batches of every act that is running, until none is left that this process can go on with. */
  async run(): Promise<void> {
    const { database: db } = this.#context
    const running = await db.query<{ bulk_act_id: string }>(
      'bulk.running',
      sql`select bulk_act_id from ${db.t.bulkActs} where state = ${raw(`'running'`)} order by started_at`,
    )
    for (const { bulk_act_id: bulkActId } of running) {
      try {
        while ((await advance(this.#context, bulkActId)) === 'more');
      } catch (error) {
        // The acts after it are not held up by it.
        this.#context.logger.warn({ err: error, bulkActId }, 'bulk_acts_failed')
      }
    }
  }

  /** The same, once at a time, and what goes wrong is logged: servers do so regularly. */
  async resume(): Promise<void> {
    if (this.#running !== undefined) this.#again = true
    this.#running ??= this.#runAgain()
      .catch((error: unknown) => this.#context.logger.warn({ err: error }, 'bulk_acts_failed'))
      .finally(() => {
        this.#running = undefined
      })
    await this.#running
  }

  /** What was started while it ran is not in the list that it read. */
  async #runAgain(): Promise<void> {
    do {
      this.#again = false
      await this.run()
    } while (this.#again)
  }

  async #count(of: { act: Act; filter: JobFilter; beforeJobId: string }): Promise<{ count: number; first: string[] }> {
    let [count, after]: [number, string | undefined] = [0, undefined]
    const first: string[] = []
    do {
      const found = await matchingJobs(this.#context.database, of, { after, limit: countBatch })
      count += found.jobIds.length
      first.push(...found.jobIds.slice(0, sampleSize - first.length))
      after = found.next
    } while (after !== undefined)
    return { count, first }
  }
}
