import pg from 'pg'
import { FencepostError } from '../errors.ts'
import {
  failure,
  isConnectionLost,
  isPlanStale,
  isUnanswered,
  isWaitedInVain,
  poolExhausted,
  wantsRepeat,
} from './failure.ts'
import { Lane } from './lane.ts'
import { beginLimited, limitSession, type Limits } from './limits.ts'
import { planOnce, statementName } from './prepared.ts'
import { relationsOf, type Relations } from './relations.ts'
import { mayWrite, raw, type Sql } from './sql.ts'
import { types } from './types.ts'

/** Where a statement can be run: the pool, one transaction of ours, or the caller's own client. */
export interface Db {
  readonly t: Relations
  /** Whether statements are planned once per connection, and not at every call. */
  readonly prepared: boolean
  /**
   * Runs one statement. `name` says what it does, in errors and to pause points; `answerMs` how long it may take, where
   * that is less than any statement may.
   */
  query<Row>(name: string, statement: Sql, answerMs?: number): Promise<Row[]>
}

/** Where packages on top of the engine run their statements: on relations of their own, which the engine's are not. */
export interface PackageDb {
  readonly t: Pick<Relations, 'schema' | 'now'>
  query<Row>(name: string, statement: Sql, answerMs?: number): Promise<Row[]>
}

/** The same on the engine's own connections. */
export interface EngineDatabase extends PackageDb {
  transaction<T>(name: string, work: (db: PackageDb) => Promise<T>): Promise<T>
  clientTransaction<T>(name: string, work: (db: PackageDb, client: pg.PoolClient) => Promise<T>): Promise<T>
}

/** Statements that run on one connection, one after another, each committed by itself. */
export interface LaneDb extends Db {
  /** Waits for what is under way, then closes the connection. */
  close(): Promise<void>
}

/** A client of `pg` as callers hand it in to have a submission in their own transaction. */
export type CallerClient = Pick<pg.ClientBase, 'query'>

/** Called before every statement. Tests stop here, or cut the connection; nothing else uses it. */
export type PausePoint = (at: { statement: string; processId: number | undefined }) => Promise<void>

export interface DatabaseOptions extends Limits {
  url: string
  schema: string
  maxConnections: number
  connectTimeoutMs: number
  preparedStatements: boolean
  pausePoint?: PausePoint | undefined
  onConnectionError: (error: Error) => void
  /** Called after whatever may have written events was committed. */
  onWritten?: (() => void) | undefined
}

const repeats = 5
/** Long enough that a worker with little to do keeps its connections, on which every statement is already planned. */
const idleMs = 300_000
/** How soon the system begins to ask whether the other end of a silent connection is still there; it asks ten times. */
export const keepAliveMs = 10_000

/** What is wanted of a connection, beside the statement. */
interface Sending {
  prepared: boolean
  /** Whether the statement may have been applied when there is no answer. */
  applied: 'no' | 'unknown'
  /** How long to wait for the answer, if not as long as for any; 0 where that is not ours to say. */
  answerMs?: number | undefined
}

/** A pool of connections, and everything that talks to Postgres through it. */
export class Database implements Db {
  readonly t: Relations
  readonly prepared: boolean
  readonly pool: pg.Pool
  readonly #pausePoint: PausePoint | undefined
  readonly #answerTimeoutMs: number
  readonly #setUpMs: number
  readonly #limits: Limits
  readonly #begin: Sql
  readonly #connection: pg.ClientConfig
  readonly #lanes = new Set<Lane>()
  readonly #onConnectionError: (error: Error) => void
  readonly #onWritten: (() => void) | undefined
  /**
   * Connections of the pool that were made since a statement last went unanswered or had a stale plan: the others may be
   * as dead, or have the same plan.
   */
  #trusted = new WeakSet<pg.ClientBase>()
  #beside: LaneDb | undefined
  /** How many connections callers hold for transactions of their own. */
  #heldByCallers = 0
  /** When Postgres last answered a statement of the pool, by this process's steady clock. */
  #answeredAt = 0
  #closed: Promise<unknown> | undefined

  constructor(options: DatabaseOptions) {
    this.t = relationsOf(options.schema)
    this.#pausePoint = options.pausePoint
    this.prepared = options.preparedStatements
    this.#answerTimeoutMs = options.answerTimeoutMs
    this.#limits = options
    // Connections that are ours have their limits already.
    this.#begin = raw(options.preparedStatements ? 'begin isolation level read committed' : beginLimited(options))
    this.#setUpMs = Math.min(options.connectTimeoutMs, options.answerTimeoutMs)
    this.#onWritten = options.onWritten
    this.#connection = {
      connectionString: options.url,
      connectionTimeoutMillis: options.connectTimeoutMs,
      application_name: 'fencepost',
      keepAlive: true,
      keepAliveInitialDelayMillis: keepAliveMs,
    }
    // It is waited for, which the type declared for it does not say.
    const onConnect: { onConnect: (client: pg.ClientBase) => Promise<void> } = {
      onConnect: async (client) => {
        await this.#setUp(client)
        this.#trusted.add(client)
      },
    }
    this.pool = new pg.Pool({
      ...this.#connection,
      ...onConnect,
      max: options.maxConnections,
      idleTimeoutMillis: idleMs,
    })
    // An idle connection that breaks must not end the process; the next statement gets a fresh one.
    this.#onConnectionError = options.onConnectionError
    this.pool.on('error', options.onConnectionError)
  }

  /** One statement, committed by itself. Repeated after a deadlock, or when its plan was stale. */
  async query<Row>(name: string, statement: Sql, answerMs?: number): Promise<Row[]> {
    return this.#query(name, statement, answerMs, (work) => this.#with(name, work))
  }

  /** A connection beside the pool, for statements that are sent one behind another. */
  lane(): LaneDb {
    const lane = new Lane(this.#connection, (client) => this.#setUp(client), this.#onConnectionError)
    this.#lanes.add(lane)
    const use = async <T>(name: string, work: (client: pg.ClientBase) => Promise<T>) => {
      this.#requireOpen(name)
      return lane.use(name, work)
    }
    return {
      t: this.t,
      prepared: this.prepared,
      query: (name, statement, answerMs) => this.#query(name, statement, answerMs, (work) => use(name, work)),
      close: async () => {
        this.#lanes.delete(lane)
        await lane.close()
      },
    }
  }

  /**
   * One connection for all that is written while its writer holds a connection of the pool. From the pool it would want
   * a second one, and with every connection held that way nobody would ever get it. Opened when it is first used.
   */
  get beside(): Db {
    this.#beside ??= this.lane()
    return this.#beside
  }

  /** Several statements, committed together or not at all. Repeated, as a whole, after a deadlock. */
  async transaction<T>(name: string, work: (db: Db) => Promise<T>): Promise<T> {
    return repeated(() => this.#transaction(name, work))
  }

  /** The same for work that is not ours to repeat, and that also gets the bare client. */
  async clientTransaction<T>(name: string, work: (db: Db, client: pg.PoolClient) => Promise<T>): Promise<T> {
    return this.#transaction(name, async (db, client) => {
      this.#heldByCallers += 1
      try {
        return await work(db, client)
      } finally {
        this.#heldByCallers -= 1
      }
    })
  }

  async #transaction<T>(name: string, work: (db: Db, client: pg.PoolClient) => Promise<T>): Promise<T> {
    return this.#with(name, async (client) => {
      await this.#send(client, `${name}.begin`, this.#begin, ofTransaction)
      let value: T
      try {
        value = await work(this.#on(client, { ...ofTransaction, prepared: this.prepared }), client)
      } catch (error) {
        if (!isConnectionLost(error)) await this.#rollBack(client)
        throw error
      }
      await this.#commit(client, name)
      this.#onWritten?.()
      return value
    })
  }

  async #rollBack(client: pg.PoolClient): Promise<void> {
    try {
      const rollback = { text: 'rollback', query_timeout: this.#answerTimeoutMs }
      await client.query(rollback)
    } catch (error) {
      client.emit('error', error) // broken: it has rolled back by itself, or will, and nobody gets it again
    }
  }

  /** The caller's client: what runs here commits, or not, with the caller's transaction. */
  join(client: CallerClient): Db {
    return this.#on(client as pg.ClientBase, ofCaller)
  }

  #on(client: pg.ClientBase, sending: Sending): Db {
    return {
      t: this.t,
      prepared: sending.prepared,
      query: async <Row>(name: string, statement: Sql) =>
        (await this.#send(client, name, statement, sending)).rows as Row[],
    }
  }

  /** Waits for what is running, then closes the connections. */
  async close(): Promise<void> {
    this.#closed ??= Promise.all([this.pool.end(), ...[...this.#lanes].map((lane) => lane.close())])
    await this.#closed
  }

  #requireOpen(name: string): void {
    if (this.#closed === undefined) return
    throw new FencepostError('engine_closed', `${name}: the engine has been closed; open another one.`)
  }

  async #setUp(client: pg.ClientBase): Promise<void> {
    if (!this.prepared) return
    await planOnce(client, this.#setUpMs)
    await limitSession(client, this.#limits, this.#setUpMs)
  }

  async #query<Row>(
    name: string,
    statement: Sql,
    answerMs: number | undefined,
    connected: (work: (client: pg.ClientBase) => Promise<pg.QueryResult>) => Promise<pg.QueryResult>,
  ): Promise<Row[]> {
    const sending: Sending = { prepared: this.prepared, applied: 'unknown', answerMs }
    const result = await repeated(() => connected((client) => this.#send(client, name, statement, sending)))
    const rows = result.rows as Row[]
    if (rows.length > 0 && mayWrite(statement)) this.#onWritten?.()
    return rows
  }

  async #connect(name: string): Promise<pg.PoolClient> {
    for (;;) {
      const waitsSince = performance.now()
      let client: pg.PoolClient
      try {
        client = await this.pool.connect()
      } catch (error) {
        throw this.#isUsedUp(error, waitsSince)
          ? poolExhausted(name, this.pool.totalCount, this.#heldByCallers, error)
          : failure(error, name, 'no')
      }
      if (this.#trusted.has(client)) return client
      client.release(true)
    }
  }

  // Not where every connection waits for an answer, and none comes: then it is Postgres that is away.
  #isUsedUp(error: unknown, waitsSince: number): boolean {
    return isWaitedInVain(error) && (this.#heldByCallers > 0 || this.#answeredAt > waitsSince)
  }

  async #with<T>(name: string, work: (client: pg.PoolClient) => Promise<T>): Promise<T> {
    this.#requireOpen(name)
    const client = await this.#connect(name)
    let broken: Error | undefined
    const onError = (error: Error) => {
      broken = error
    }
    client.on('error', onError)
    try {
      return await work(client)
    } catch (error) {
      // Postgres says goodbye in answer to a statement, and hangs up a moment later: nobody may get this one meanwhile.
      if (isConnectionLost(error) || isPlanStale(error)) broken ??= new Error('connection lost', { cause: error })
      throw error
    } finally {
      client.off('error', onError)
      client.release(broken)
    }
  }

  // A transaction in which a statement failed, and the error was swallowed, answers "commit" with a silent rollback.
  async #commit(client: pg.PoolClient, name: string): Promise<void> {
    const { command } = await this.#send(client, `${name}.commit`, raw('commit'), {
      prepared: false,
      applied: 'unknown',
    })
    if (command === 'COMMIT') return
    throw new FencepostError(
      'transaction_aborted',
      `${name}: a statement of the transaction had failed, so Postgres rolled all of it back. Let its error through.`,
    )
  }

  async #send(
    client: pg.ClientBase,
    name: string,
    statement: Sql,
    { prepared, applied, answerMs = this.#answerTimeoutMs }: Sending,
  ): Promise<pg.QueryResult> {
    if (this.#pausePoint !== undefined) {
      await this.#pausePoint({ statement: name, processId: (client as { processID?: number }).processID })
    }
    const { text } = statement
    try {
      const query = {
        text,
        values: [...statement.values],
        types,
        query_timeout: Math.min(answerMs, this.#answerTimeoutMs),
      }
      const result = await client.query(prepared ? { ...query, name: statementName(text) } : query)
      this.#answeredAt = performance.now()
      return result
    } catch (error) {
      if (isUnanswered(error) || isPlanStale(error)) this.#trusted = new WeakSet()
      throw failure(error, name, applied)
    }
  }
}

const ofTransaction: Sending = { prepared: false, applied: 'no' }
/** Nothing is left behind on a connection that is not ours. */
const ofCaller: Sending = { ...ofTransaction, answerMs: 0 }

async function repeated<T>(work: () => Promise<T>): Promise<T> {
  for (let left = repeats; ; left -= 1) {
    try {
      return await work()
    } catch (error) {
      if (left === 0 || !wantsRepeat(error)) throw error
    }
  }
}
