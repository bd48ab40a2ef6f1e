import { setTimeout as sleep } from 'node:timers/promises'
import type { Engine, Job, JobEvent, Step } from '@fencepost/engine'
import { DuckDb, type Catalog, type TableIdentifier } from '@fencepost/iceberg'
import type { Catalogs } from '../catalogs/catalogs.ts'
import { tableHealth, type RecommendedAction, type TableHealth } from '../health/index.ts'
import { operationName } from '../operation/payload.ts'
import { makeSampleLake, sampleLakeTables, type SampleLakeProgress } from '../sample-lake/index.ts'
import { proveRows, type RowProof } from './row-proof.ts'

// The whole story on one machine: a lake that needs care, its health, a job of table_maintenance for every table that
// needs one, and the proof that no row was changed.

/** A table at one moment. */
export interface ExaminedTable {
  readonly table: string
  readonly story: string
  readonly health: TableHealth
  readonly proof: RowProof
}

/** How far the job of a table has come. */
export interface TableProgress {
  readonly table: string
  readonly status: Job['status']
  readonly error: string | undefined
  readonly actions: readonly ActionState[]
}

export interface ActionState {
  readonly action: string
  readonly state: 'waiting' | 'running' | 'done' | 'failed'
  /** From 0 to 1; undefined while nobody can tell. */
  readonly share: number | undefined
  readonly seconds: number | undefined
  readonly message: string | undefined
}

/** Whoever shows it is told what is going on. */
export interface DemoWatcher {
  readonly making: (progress: SampleLakeProgress) => void
  readonly examined: (tables: readonly ExaminedTable[]) => void
  readonly maintaining: (tables: readonly TableProgress[]) => void
}

export interface DemoOptions {
  /** Has the operation table_maintenance of these catalogs. */
  readonly engine: Engine
  readonly catalogs: Catalogs
  /** Where the files of the lake are made: a folder of this machine. */
  readonly folder: string
  readonly scale?: number
  readonly signal?: AbortSignal
  readonly watcher: DemoWatcher
}

export interface DemoResult {
  readonly tables: readonly { readonly before: ExaminedTable; readonly after: ExaminedTable }[]
  /** Whether every job succeeded, every table has the rows it had, and nothing more is recommended. */
  readonly isHealthy: boolean
  readonly failures: readonly string[]
}

const lookMs = 150
/** As many as a small machine has cores. */
const concurrency = 2

/** Makes the lake, maintains it, and compares. */
export async function demonstrate(options: DemoOptions): Promise<DemoResult> {
  const { catalogs, folder, scale = 1, signal, watcher } = options
  const { catalog } = await catalogs.open(catalogs.defaultName)
  const given = signal === undefined ? {} : { signal }
  await makeSampleLake(catalog, folder, { scale, onProgress: watcher.making, ...given })
  const before = await examineAll(catalog, signal)
  watcher.examined(before)
  const failures = await maintainAll(options, before)
  signal?.throwIfAborted()
  const after = await examineAll(catalog, signal)
  const pairs = before.map((one, index) => ({ before: one, after: after[index] ?? one }))
  for (const pair of pairs) failures.push(...problemsOf(pair))
  return { tables: pairs, isHealthy: failures.length === 0, failures }
}

function problemsOf({ before, after }: DemoResult['tables'][number]): string[] {
  const problems: string[] = []
  const { rows, checksum } = after.proof
  if (rows !== before.proof.rows || checksum !== before.proof.checksum) {
    problems.push(`${after.table}: ${before.proof.rows} rows became ${rows}, or their values have changed.`)
  }
  const left = after.health.recommendedActions.map(({ action }) => action)
  if (left.length > 0) problems.push(`${after.table} still needs ${left.join(', ')}.`)
  return problems
}

async function examineAll(catalog: Catalog, signal: AbortSignal | undefined): Promise<ExaminedTable[]> {
  const duckDb = await DuckDb.open()
  try {
    const examined: ExaminedTable[] = []
    for (const { namespace, name, story } of sampleLakeTables) {
      signal?.throwIfAborted()
      const identifier: TableIdentifier = { namespace: [namespace], name }
      const table = await catalog.loadTable(identifier)
      const health = await tableHealth(catalog, table, { orphans: true })
      examined.push({
        table: `${namespace}.${name}`,
        story,
        health,
        proof: await proveRows(catalog, identifier, duckDb),
      })
    }
    return examined
  } finally {
    await duckDb.close()
  }
}

interface Submission {
  readonly jobId: string
  readonly table: string
  readonly actions: readonly RecommendedAction[]
}

/** Submits a job for every table that needs something, and runs them. Returns what failed. */
async function maintainAll(
  { engine, catalogs, signal, watcher }: DemoOptions,
  tables: readonly ExaminedTable[],
): Promise<string[]> {
  const submissions: Submission[] = []
  for (const { table, health } of tables) {
    const actions = health.recommendedActions
    if (actions.length === 0) continue
    const [database = '', name = ''] = table.split('.')
    const submitted = await engine.submit(operationName, {
      catalog: catalogs.defaultName,
      database,
      table: name,
      actions: actions.map(({ action }) => action),
      options: Object.fromEntries(actions.filter(hasOptions).map(({ action, options }) => [action, options])),
    })
    if (submitted.submitted) submissions.push({ jobId: submitted.jobId, table, actions })
  }
  const stop = new AbortController()
  const signals = [stop.signal, ...(signal === undefined ? [] : [signal])]
  const worked = engine.work({ concurrency, signal: AbortSignal.any(signals) })
  try {
    return await follow(engine, submissions, watcher, signal)
  } finally {
    stop.abort()
    await worked
  }
}

function hasOptions({ options }: RecommendedAction): boolean {
  return Object.keys(options).length > 0
}

async function follow(
  engine: Engine,
  submissions: readonly Submission[],
  watcher: DemoWatcher,
  signal: AbortSignal | undefined,
): Promise<string[]> {
  const ids = submissions.map(({ jobId }) => jobId)
  for (;;) {
    signal?.throwIfAborted()
    const jobs = new Map<string, Job | undefined>()
    for (const jobId of ids) jobs.set(jobId, await engine.get(jobId))
    // After the jobs: one that has ended has stored all of its steps.
    const steps = await engine.steps(ids)
    const states: TableProgress[] = []
    for (const submission of submissions) {
      const job = jobs.get(submission.jobId)
      const events = await engine.events(submission.jobId, { limit: 1000 })
      states.push(progressOf(submission, job, steps.get(submission.jobId) ?? [], events))
    }
    watcher.maintaining(states)
    if (states.every(({ status }) => status !== 'pending' && status !== 'running')) {
      return states.flatMap(({ table, status, error }) =>
        status === 'completed' ? [] : [`${table}: ${error ?? status}`],
      )
    }
    await sleep(lookMs)
  }
}

function progressOf(
  { table, actions }: Submission,
  job: Job | undefined,
  steps: readonly Step[],
  events: readonly JobEvent[],
): TableProgress {
  const byStep = new Map(steps.map((step) => [step.step, step]))
  let isNext = job?.status === 'running'
  const states = actions.map(({ action }): ActionState => {
    const step = byStep.get(action)
    if (step !== undefined) {
      const { success, message, error, elapsedSeconds: seconds } = step
      return { action, state: success ? 'done' : 'failed', share: 1, seconds, message: success ? message : error }
    }
    const isRunning = isNext
    isNext = false
    const share = isRunning ? shareOf(events, action) : 0
    return { action, state: isRunning ? 'running' : 'waiting', share, seconds: undefined, message: undefined }
  })
  return { table, status: job?.status ?? 'pending', error: job?.error, actions: states }
}

/** By the groups that the last event of the action counts. */
function shareOf(events: readonly JobEvent[], action: string): number | undefined {
  const last = events.findLast(({ fields }) => isRecord(fields) && fields['action'] === action && 'done' in fields)
  const fields = last?.fields
  if (!isRecord(fields)) return undefined
  const [done, total] = [Number(fields['done']), Number(fields['total'])]
  return total > 0 ? done / total : undefined
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
