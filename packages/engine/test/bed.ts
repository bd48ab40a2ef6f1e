import pg from 'pg'
import { z } from 'zod'
import type { Attempt } from '../src/attempt/attempt.ts'
import { Database, type Db, type PausePoint } from '../src/database/database.ts'
import type { EngineClaimOptions } from '../src/attempt/claims.ts'
import type { Engine } from '../src/engine.ts'
import { openEngineWith } from '../src/open.ts'
import { operation } from '../src/operation.ts'
import type { EngineOptions } from '../src/options.ts'
import { createTestDatabase } from './database.ts'

/** An operation that takes any object; locks, slots and dedup keys are given when it is submitted. */
export const work = operation('work', {
  keys: 'caller',
  payload: z.looseObject({}),
  retry: { firstDelayMs: 1000, maxDelayMs: 60_000 },
  run: async () => null,
})

/** A database of a test file's own, engines on it, and a clock that tests move. */
export interface Bed {
  url: string
  engine: Engine
  /** For statements of the engine by themselves. */
  database: Database
  /** One more engine with connections of its own, as another process would have. */
  open(options?: Partial<EngineOptions>, hooks?: { pausePoint?: PausePoint }): Promise<Engine>
  /** Lets Postgres's time pass, for every session of this database. */
  advance(ms: number): Promise<void>
  /** Looks into the database. */
  query<Row = Record<string, unknown>>(text: string, values?: unknown[]): Promise<Row[]>
  /** Runs statements in a transaction of its own and stops before it ends; reset() rolls back what is still held. */
  hold<T>(work: (db: Db) => Promise<T>): Promise<Held<T>>
  /** Resolves when as many sessions as given wait for a lock. */
  blocked(sessions?: number): Promise<void>
  /** Removes every job. */
  reset(): Promise<void>
  close(): Promise<void>
}

export interface Held<T> {
  value: T
  commit(): Promise<void>
  rollback(): Promise<void>
}

const schema = 'fencepost'

export async function openBed(options: Partial<EngineOptions> = {}): Promise<Bed> {
  const { url, drop } = await createTestDatabase()
  const pool = new pg.Pool({ connectionString: url, max: 2 })
  pool.on('error', () => {}) // a connection may still be closing when the database is dropped
  const engines: Engine[] = []
  const database = new Database({
    url,
    schema,
    maxConnections: 8,
    preparedStatements: true,
    connectTimeoutMs: 10_000,
    answerTimeoutMs: 120_000,
    idleTransactionTimeoutMs: 30_000,
    lockTimeoutMs: 60_000,
    onConnectionError: () => {},
  })
  const open: Bed['open'] = async (more = {}, hooks = {}) => {
    const engine = await openEngineWith(
      { database: url, schema, migrate: false, operations: [work], ...options, ...more },
      hooks,
    )
    engines.push(engine)
    return engine
  }
  const holds = new Set<Held<unknown>>()
  const letGoOfHolds = async () => {
    for (const held of holds) await held.rollback().catch(() => {}) // it has ended, one way or the other
    holds.clear()
  }
  const query = async <Row>(text: string, values: unknown[] = []) => (await pool.query(text, values)).rows as Row[]
  return {
    database,
    url,
    engine: await open(),
    open,
    query,
    advance: async (ms) => {
      await query(`update ${schema}.test_clock set ahead = ahead + $1 * interval '1 millisecond'`, [ms])
    },
    hold: async (work) => {
      const held = await hold(database, work)
      holds.add(held)
      return held
    },
    blocked: (sessions = 1) => blocked(query, sessions),
    reset: async () => {
      // Deleting a handful of rows is many times faster than truncating nine tables.
      await query(
        [
          'live_jobs',
          'finished_jobs',
          'stored_events',
          'job_steps',
          'resource_locks',
          'slots',
          'settings',
          'workers',
          'schedules',
          'paused_queues',
          'run_agains',
          'bulk_acts',
        ]
          .map((table) => `delete from ${schema}.${table}`)
          .join('; '),
      )
    },
    close: async () => {
      await letGoOfHolds()
      await Promise.all(engines.map((engine) => engine.close()))
      await database.close()
      await pool.end()
      await drop()
    },
  }
}

async function hold<T>(database: Database, work: (db: Db) => Promise<T>): Promise<Held<T>> {
  const rolledBack = new Error('rolled back')
  let release: (how: 'commit' | 'rollback') => void = () => {}
  const end = new Promise<'commit' | 'rollback'>((resolve) => {
    release = resolve
  })
  let started: (value: T) => void = () => {}
  const value = new Promise<T>((resolve) => {
    started = resolve
  })
  const ended = database.clientTransaction('hold', async (db) => {
    started(await work(db))
    if ((await end) === 'rollback') throw rolledBack
  })
  const settled = ended.catch((error: unknown) => {
    if (error !== rolledBack) throw error
  })
  return {
    value: await Promise.race([value, settled.then(() => value)]),
    commit: async () => {
      release('commit')
      await settled
    },
    rollback: async () => {
      release('rollback')
      await settled
    },
  }
}

async function blocked(query: Bed['query'], sessions: number): Promise<void> {
  const deadline = Date.now() + 10_000
  for (;;) {
    const rows = await query(
      `select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`,
    )
    if (rows.length >= sessions) return
    if (Date.now() > deadline) throw new Error(`${rows.length} of ${sessions} sessions wait for a lock`)
  }
}

/** A pause point that stops a chosen statement until it is let go. */
export class Gate {
  readonly #stops = new Map<string, { reached: () => void; go: Promise<void> }>()
  /** Every statement that came by. */
  readonly seen: string[] = []

  readonly pausePoint: PausePoint = async ({ statement }) => {
    this.seen.push(statement)
    const stop = this.#stops.get(statement)
    if (stop === undefined) return
    this.#stops.delete(statement)
    stop.reached()
    await stop.go
  }

  /** Stops the next statement of this name: `reached` resolves when it is about to be sent, `go()` sends it. */
  stopAt(statement: string): { reached: Promise<void>; go: () => void } {
    let go = () => {}
    let reached = () => {}
    const arrival = new Promise<void>((resolve) => {
      reached = resolve
    })
    this.#stops.set(statement, {
      reached,
      go: new Promise<void>((resolve) => {
        go = resolve
      }),
    })
    return { reached: arrival, go }
  }
}

/** The jobId of a submission that must have been accepted. */
export async function submitted(answer: ReturnType<Engine['submit']>): Promise<string> {
  const value = await answer
  if (!value.submitted) throw new Error(`not submitted: ${JSON.stringify(value)}`)
  return value.jobId
}

/** The attempt of a claim that must find a job. */
export async function claimOne(engine: Engine, options: EngineClaimOptions = {}): Promise<Attempt> {
  const [attempt] = await engine.claim({ ...options, limit: 1 })
  if (attempt === undefined) throw new Error('nothing to claim')
  return attempt
}
