import { Claims } from '../attempt/claims.ts'
import { renewAttempts } from '../attempt/renewals.ts'
import type { Context } from '../context.ts'
import { sql } from '../database/sql.ts'
import type { Engine } from '../engine.ts'
import { claimNames } from '../operation.ts'
import { atMost } from './at-most.ts'
import { Handlers } from './handlers.ts'
import { ListenWakeUp } from './listen.ts'
import { checkWorkOptions, type CheckedWorkOptions, type WorkOptions } from './options.ts'
import { register } from './registry.ts'
import { retainRegularly } from './retain-regularly.ts'
import { survey } from './survey.ts'
import type { WakeUp } from './wake-up.ts'
import { takeWorkerId } from './worker-id.ts'
import { Worker } from './worker.ts'

const patienceMs = 1_000

/** Works until the signal fires; resolves when the database is tidy. */
export async function work(context: Context, engine: Engine, options: WorkOptions): Promise<void> {
  const checked = checkWorkOptions(options, context.operations)
  const { signal } = checked
  if (signal?.aborted) return
  const operations = checked.operations.map(({ name }) => name)
  const names = checked.operations.flatMap(claimNames)
  const handlers = new Handlers(context, checked)
  await handlers.start()
  const { workerId, giveBack } = takeWorkerId(engine)
  const unregister = await register(context, { ...checked, workerId, operations: names })
  const claims = new Claims(context, workerId, () => engine.sweep())
  const claiming = context.database.lane()
  // Apart from the pool, too: handlers with transactions of their own may be using all of that.
  const renewing = context.database.lane()
  const worker = new Worker(
    {
      claims: {
        plain: (wanted, from) => claims.plain(claiming, wanted, from),
        ofQueue: (wanted, ifNone) => claims.ofQueue(wanted, ifNone),
      },
      claimJobs: (jobIds, wanted) => engine.claimJobs(jobIds, { ...wanted, workerId }),
      renew: (attempts) => renewAttempts(context, renewing, attempts),
      settleAll: (settlements) => engine.settleAll(settlements),
      sweep: (unlessWithinMs) => engine.sweep({ unlessWithinMs }),
      passOn: (jobIds, mine) => passOn(context, jobIds, mine),
      survey: () => survey(context.database, checked.queues, names),
      submitDue: () => engine.schedules.submitDue(operations),
      execute: (attempt) => context.telemetry.running(attempt.claimed, () => handlers.execute(attempt)),
      endHandler: (attempt) => handlers.end(attempt),
    },
    checked,
    wakeUpOf(context, checked),
    context.logger,
  )
  await worker.start()
  const stopRetaining = retainRegularly(() => engine.retain(), checked.retainMs, context.logger)
  if (!signal?.aborted) await new Promise((resolve) => signal?.addEventListener('abort', resolve, { once: true }))
  stopRetaining()
  try {
    await worker.stop()
  } finally {
    await handlers.close()
    await atMost(patienceMs, Promise.all([unregister(), claiming.close(), renewing.close()])) // Postgres may not answer
    giveBack()
  }
}

/** How a worker with these options hears of work and of cancels; undefined when it does not. */
export function wakeUpOf({ url, database, logger, wake }: Context, { wakeUp }: CheckedWorkOptions): WakeUp | undefined {
  if (wakeUp === undefined) return wake.listen()
  if (wakeUp === 'none') return undefined
  return wakeUp === 'listen' ? new ListenWakeUp(url, database.t.schema, logger) : wakeUp
}

// A message goes to one worker of its queue, which may have no handler for its job while another has: all are told.
async function passOn({ database, wake }: Context, jobIds: readonly string[], mine: readonly string[]): Promise<void> {
  const { t } = database
  const others = await database.query<{ queue: string }>(
    'pass_on',
    sql`select distinct queue from ${t.liveJobs}
         where job_id = any(${jobIds}::uuid[]) and status = 'pending' and run_after <= ${t.now}
           and not operation = any(${mine}::text[])`,
  )
  wake.queues(others.map(({ queue }) => queue))
}
