import pg from 'pg'
import { z } from 'zod'
import type { Attempt } from '../../src/attempt/attempt.ts'
import type { Outcome } from '../../src/attempt/settle.ts'
import { FencepostError, PermanentError, RetryLater } from '../../src/errors.ts'
import { dashedId } from '../../src/ids.ts'
import { child, defer } from '../../src/lifecycle/defer.ts'
import type { SubmitOptions } from '../../src/lifecycle/submission.ts'
import type { Submitted } from '../../src/lifecycle/submit.ts'
import { operation } from '../../src/operation.ts'
import { openBed, type Bed } from '../bed.ts'
import type { Ending, Numbered, Step } from './commands.ts'
import { minutes } from './model.ts'
import { readSnapshot, type Snapshot } from './snapshot.ts'

const minute = 60_000

/** The operation of all jobs in histories. The payload says which job it is. */
const work = operation('work', {
  keys: 'caller',
  payload: z.object({ job: z.number() }),
  retry: { firstDelayMs: minutes.firstRetry * minute, maxDelayMs: minutes.maxRetry * minute },
  run: async () => null,
})

/**
 * The real thing: an engine on a Postgres of its own. It carries out steps, and answers in the words of the model: jobs
 * by their number, attempts by the order of their claims.
 */
export class World {
  readonly #bed: Bed
  readonly #client: pg.Client
  readonly #jobIds = new Map<number, string>()
  readonly #jobs = new Map<string, number>()
  readonly #attempts: Attempt[] = []
  readonly #attemptNumbers = new Map<string, number>()

  private constructor(bed: Bed, client: pg.Client) {
    this.#bed = bed
    this.#client = client
  }

  static async open(): Promise<World> {
    const bed = await openBed({
      operations: [work],
      staleMs: minutes.stale * minute,
      retentionMs: minutes.retention * minute,
      wakeDelayMs: 3_600_000, // nobody listens
    })
    const client = new pg.Client({ connectionString: bed.url })
    client.on('error', () => {}) // the statement that is under way reports it
    await client.connect()
    await client.query('create table ledger (id bigint generated always as identity, attempt_id uuid not null)')
    return new World(bed, client)
  }

  async close(): Promise<void> {
    await this.#client.end()
    await this.#bed.close()
  }

  /** Forgets everything, and sets the clock back. */
  async reset(): Promise<void> {
    this.#jobIds.clear()
    this.#jobs.clear()
    this.#attempts.length = 0
    this.#attemptNumbers.clear()
    await this.#bed.reset()
    await this.#client.query(`delete from ledger; update fencepost.test_clock set ahead = '0'`)
  }

  /** Everything there is, in one look; jobs that turned up since the last one are known from then on. */
  async look(): Promise<Snapshot> {
    const snapshot = await readSnapshot(this.#client)
    for (const { job_id: jobId, payload } of [...snapshot.live, ...snapshot.finished]) this.#know(payload.job, jobId)
    return snapshot
  }

  /** The number of a job, by its id with dashes, as a row has it. */
  jobOf(jobId: string): number | undefined {
    return this.#jobs.get(jobId)
  }

  /** The number of an attempt, by its id with dashes. */
  attemptOf(attemptId: string): number | undefined {
    return this.#attemptNumbers.get(attemptId)
  }

  attemptId(attempt: number): string {
    return dashedId(this.#attempt(attempt).attemptId)
  }

  /** Carries out one step. Errors that callers are to expect are answers too. */
  async carryOut(step: Step): Promise<unknown> {
    try {
      return await this.#carryOut(step)
    } catch (error) {
      if (error instanceof FencepostError && error.code === 'fence_lost') return { threw: error.code }
      if (error instanceof PermanentError) return { threw: error.name }
      throw error
    }
  }

  async #carryOut(step: Step): Promise<unknown> {
    const { engine } = this.#bed
    switch (step.do) {
      case 'submit':
        return this.#submit(step.wanted, step.inside)
      case 'claim': {
        const { worker, limit, lease } = step
        const attempts = await engine.claim({ workerId: worker, limit, leaseMs: lease * minute })
        return attempts.map((attempt) => this.#meet(attempt))
      }
      case 'claim_job': {
        const { worker, lease } = step
        const answer = await engine.claimJob(this.#jobId(step.job), { workerId: worker, leaseMs: lease * minute })
        return answer.claimed ? { claimed: true, ...this.#meet(answer.attempt) } : answer
      }
      case 'renew': {
        const { lost } = await engine.renew(step.attempts.map((attempt) => this.#attempt(attempt)))
        return { lost: lost.map((attempt) => this.#attempts.indexOf(attempt)) }
      }
      case 'advance':
        return this.#bed.advance(step.minutes * minute)
      case 'settle_all':
        return engine.settleAll(
          step.endings.map((one) => ({ attempt: this.#attempt(one.attempt), outcome: outcomeOf(one) })),
        )
      case 'cancel': {
        const answer = await engine.cancel(this.#jobId(step.job))
        return answer.cancelled ? { cancelled: true, jobs: this.#numbers(answer.jobIds) } : answer
      }
      case 'recover': {
        const answer = await engine.recover(this.#jobId(step.job))
        return !answer.recovered && answer.why === 'not_stale' ? { recovered: false, why: answer.why } : answer
      }
      case 'delete':
        return engine.delete(this.#jobId(step.job))
      case 'abort_pipeline': {
        const answer = await engine.abortPipeline(this.#jobId(step.job))
        return answer.aborted ? { aborted: true, jobs: this.#numbers(answer.jobIds) } : answer
      }
      case 'sweep': {
        const swept = await engine.sweep()
        if (swept === undefined) return swept
        const { expired, failed, closed, freedLocks } = swept
        const [one, two, three] = [expired, failed, closed].map((jobIds) => this.#numbers(jobIds))
        return { expired: one, failed: two, closed: three, freed: [...freedLocks].sort() }
      }
      case 'retain':
        return engine.retain({ batch: step.batch })
      case 'drain':
        return engine.setDrain(step.level)
      case 'complete':
      case 'fail':
      case 'retry_later':
      case 'release':
      case 'defer':
      case 'let_go':
      case 'chain':
      case 'emit':
      case 'progress':
      case 'record_step':
      case 'run_step':
      case 'transaction':
        return this.#carryOutBy(this.#attempt(step.attempt), step)
    }
  }

  /** What an attempt does in its own name. */
  async #carryOutBy(attempt: Attempt, step: Extract<Step, { attempt: number }>): Promise<unknown> {
    const { engine } = this.#bed
    switch (step.do) {
      case 'complete':
        return engine.complete(attempt, { by: step.attempt })
      case 'fail':
        return engine.fail(attempt, step.permanent ? new PermanentError('no use') : new Error('no luck'))
      case 'retry_later':
        return engine.fail(attempt, new RetryLater('not yet', step.delay * 60))
      case 'release':
        return engine.release(attempt, 'going away')
      case 'defer': {
        const children = step.children.map((wanted) => child(work, { job: wanted.job }, optionsOf(wanted)))
        return engine.complete(attempt, defer(children, { failWhen: step.failWhen, result: { by: step.attempt } }))
      }
      case 'let_go':
        return attempt.letGo()
      case 'chain':
        return attempt.chain(work, { job: step.wanted.job }, optionsOf(step.wanted))
      case 'emit':
        return attempt.emit('work.noted', step.progress === undefined ? {} : { progress: { current: step.progress } })
      case 'progress':
        return attempt.progress(step.current)
      case 'record_step':
        return attempt.recordStep({ step: step.step, success: step.success })
      case 'run_step':
        return attempt.step(step.step, async () => ({ ran: step.attempt }))
      case 'transaction':
        return attempt.transaction(async (client) => {
          await client.query('insert into ledger (attempt_id) values ($1)', [attempt.attemptId])
          return null
        })
    }
  }

  async #submit(wanted: readonly Numbered[], inside: 'commit' | 'rollback' | undefined): Promise<unknown> {
    const { engine } = this.#bed
    const items = wanted.map((one) => ({ payload: { job: one.job }, options: optionsOf(one) }))
    const [only] = items
    let answers: Submitted[]
    if (inside !== undefined) {
      answers = await this.#inTransaction(inside, () => engine.submitMany(work, items, { client: this.#client }))
    } else if (items.length === 1 && only !== undefined) {
      answers = [await engine.submit(work, only.payload, only.options)]
    } else {
      answers = await engine.submitMany(work, items)
    }
    for (const [nth, answer] of answers.entries()) {
      if (answer.submitted) this.#know(wanted[nth]?.job as number, dashedId(answer.jobId))
    }
    return answers.map((answer) => this.#translate(answer))
  }

  async #inTransaction<T>(end: 'commit' | 'rollback', write: () => Promise<T>): Promise<T> {
    await this.#client.query('begin')
    try {
      const value = await write()
      await this.#client.query(end)
      return value
    } catch (error) {
      await this.#client.query('rollback')
      throw error
    }
  }

  #translate(answer: Submitted): unknown {
    if (answer.submitted) return { submitted: true, job: this.#number(answer.jobId) }
    switch (answer.why) {
      case 'locked': {
        const { jobId, attemptId } = answer.holder
        const attempt = attemptId === undefined ? undefined : this.attemptOf(dashedId(attemptId))
        return {
          submitted: false,
          why: answer.why,
          lock: answer.lockKey,
          holder: { job: this.#number(jobId), attempt },
        }
      }
      case 'duplicate':
        return { submitted: false, why: answer.why, dedup: answer.dedupKey, holder: this.#number(answer.holder.jobId) }
      case 'drained':
        return answer
    }
  }

  #meet(attempt: Attempt): { attempt: number; job: number | undefined; ordinal: number } {
    const number = this.#attempts.push(attempt) - 1
    this.#attemptNumbers.set(dashedId(attempt.attemptId), number)
    return { attempt: number, job: this.#number(attempt.jobId), ordinal: attempt.claimed.attempts }
  }

  #know(job: number, jobId: string): void {
    this.#jobIds.set(job, jobId)
    this.#jobs.set(jobId, job)
  }

  #jobId(job: number): string {
    return this.#jobIds.get(job) as string // steps name jobs that there are
  }

  #attempt(attempt: number): Attempt {
    return this.#attempts[attempt] as Attempt
  }

  #number(jobId: string): number | undefined {
    return this.#jobs.get(dashedId(jobId))
  }

  #numbers(jobIds: readonly string[]): (number | undefined)[] {
    return jobIds.map((jobId) => this.#number(jobId)).sort((a = -1, b = -1) => a - b)
  }
}

function optionsOf({ lock, slot, dedup, priority, delay, maxAttempts }: Numbered): SubmitOptions {
  return {
    priority,
    maxAttempts,
    delayMs: delay * minute,
    ...(lock !== undefined && { lockKey: lock }),
    ...(slot !== undefined && { slotKey: slot }),
    ...(dedup !== undefined && { dedupKey: dedup }),
  }
}

function outcomeOf({ attempt, ending, withStep }: { attempt: number; ending: Ending; withStep: boolean }): Outcome {
  const steps = withStep ? [{ step: 'final', success: true, result: JSON.stringify({ final: attempt }) }] : []
  switch (ending) {
    case 'complete':
      return { kind: 'completed', result: JSON.stringify({ by: attempt }), steps, chain: [] }
    case 'fail':
      return { kind: 'failed', error: 'no luck', errorCode: 'Error', permanent: false, steps }
    case 'release':
      return { kind: 'released', reason: 'shutdown' }
  }
}
