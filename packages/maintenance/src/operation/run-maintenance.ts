import { setTimeout as sleep } from 'node:timers/promises'
import { PermanentError, type Run } from '@fencepost/engine'
import { IcebergError, type ActionRun, type IcebergErrorCode } from '@fencepost/iceberg'
import { identifierOf } from '../catalogs/address.ts'
import type { Catalogs, OpenedCatalog } from '../catalogs/catalogs.ts'
import { inOrder, type ActionName } from './action-options.ts'
import { actions } from './actions.ts'
import type { DoneAction } from './done.ts'
import { fenceOf, type FencedRun } from './fence.ts'
import { MaintenanceHistory } from './history.ts'
import type { MaintenancePayload } from './payload.ts'
import { JobProgress } from './progress.ts'

/*
 * One attempt at maintaining a table. Each action is a step, stored when it ends; an attempt begins at the first action
 * without a success. An attempt that dies between a commit and its step runs that action again, which then plans on the
 * table as it is and finds nothing left to do. The job ends at the first action that fails, and names it.
 */

// What may be over by the next attempt. Everything else fails the job at once.
const passing: ReadonlySet<IcebergErrorCode> = new Set([
  'catalog_unavailable',
  'storage_failed',
  'storage_not_found', // a file that another has just replaced
  'catalog_invalid', // what a gateway answers in the place of its catalog
  'commit_conflict',
  'commit_unknown',
  'commit_refused', // the fence could not be looked at; a lost one is refused when the attempt is settled
  'parquet_failed', // the disk may be full, or the memory used up
])

interface Work extends Run<MaintenancePayload> {
  readonly opened: OpenedCatalog
  readonly fence: FencedRun
  readonly history: MaintenanceHistory
  readonly progress: JobProgress
}

/** Runs the actions of a job that have not been done yet. */
export async function runMaintenance(run: Run<MaintenancePayload>, catalogs: Catalogs): Promise<object> {
  const { payload, attempt, signal } = run
  const opened = await catalogs.open(payload.catalog)
  const work: Work = {
    ...run,
    opened,
    fence: await fenceOf(attempt, opened),
    history: new MaintenanceHistory(attempt),
    progress: new JobProgress(attempt),
  }
  const wanted = inOrder(payload.actions)
  const finished = new Map<string, unknown>()
  for (const { step, success, result } of await attempt.steps()) if (success) finished.set(step, result)
  for (const action of wanted) work.progress.planned(action, 0)
  for (const action of wanted) if (finished.has(action)) await work.progress.ended(action)
  await weigh(
    work,
    wanted.filter((action) => !finished.has(action)),
  )
  for (const action of wanted) {
    if (finished.has(action)) continue
    signal.throwIfAborted()
    finished.set(action, await runStep(work, action))
  }
  return { actions: Object.fromEntries(finished) }
}

/** Plans what rewrites bytes, so that progress is right from the start. What cannot be planned says so when it runs. */
async function weigh({ payload, opened, progress, signal }: Work, wanted: readonly ActionName[]): Promise<void> {
  const table = await opened.catalog.loadTable(identifierOf(payload), { signal }).catch(() => undefined)
  if (table === undefined) return
  for (const action of wanted) {
    signal.throwIfAborted()
    if (!action.startsWith('rewrite_')) continue
    const where = { catalog: opened.catalog, table, options: payload.options ?? {}, signal }
    const plan = await actions[action].plan(where).catch(() => undefined)
    progress.planned(action, plan?.bytes ?? 0)
  }
}

async function runStep(work: Work, action: ActionName): Promise<unknown> {
  const { attempt, history, signal } = work
  const started = performance.now()
  const elapsedSeconds = () => Math.round(performance.now() - started) / 1000
  let done: DoneAction
  try {
    done = await runAction(work, action)
    if (done.failure !== undefined) throw failureOf(done.failure)
  } catch (error) {
    signal.throwIfAborted() // stopped, cancelled or fenced off: the action has not failed
    const message = error instanceof Error ? error.message : String(error)
    await history.failed(action, message)
    await attempt.recordStep({ step: action, success: false, error: message, elapsedSeconds: elapsedSeconds() })
    const named = `${action} failed: ${message}`
    if (isLasting(error)) throw new PermanentError(named, { cause: error })
    throw new ActionFailed(named, { cause: error })
  }
  await history.done(action, done)
  const { message, result } = done
  const stored = await attempt.recordStep({
    step: action,
    success: true,
    message,
    result,
    elapsedSeconds: elapsedSeconds(),
  })
  if (!stored.written) signal.throwIfAborted()
  await work.progress.ended(action)
  return result
}

function failureOf({ reason, isRefusal }: NonNullable<DoneAction['failure']>): Error {
  return isRefusal ? new PermanentError(reason) : new Error(reason)
}

function isLasting(error: unknown): boolean {
  return error instanceof PermanentError || (error instanceof IcebergError && !passing.has(error.code))
}

async function runAction(work: Work, action: ActionName): Promise<DoneAction> {
  const { payload, opened, signal, history, progress } = work
  const { catalog } = opened
  // Loaded for every action: the one before has changed it.
  const table = await catalog.loadTable(identifierOf(payload), { signal })
  const where = { catalog, table, options: payload.options ?? {}, signal }
  try {
    return await actions[action].run(where, actionRun(work, action), async (plan) => {
      progress.planned(action, plan.bytes)
      await history.planned(plan)
    })
  } finally {
    await history.settle()
  }
}

function actionRun({ opened, fence, signal, history, progress }: Work, action: ActionName): ActionRun {
  return {
    catalog: opened.catalog,
    signal,
    ...fence,
    onProgress: (moved) => {
      progress.moved(action, moved)
      history.moved(action, moved)
    },
    pause: async (ms) => {
      await history.conflict(action, ms)
      await sleep(ms, undefined, { signal })
      await history.retried(action)
    },
  }
}

/** An action that may succeed when it is tried again. */
class ActionFailed extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options)
    this.name = 'ActionFailed'
  }
}
