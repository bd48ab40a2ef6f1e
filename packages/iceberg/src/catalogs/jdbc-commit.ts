import type pg from 'pg'
import { IcebergError } from '../errors.ts'
import { readTableMetadata } from '../metadata/metadata-file.ts'
import type { Storage } from '../storage/storage.ts'
import {
  askGuard,
  conflict,
  tableName,
  type CommitResult,
  type Guard,
  type InTransaction,
  type TableIdentifier,
  type TransactionClient,
} from './catalog.ts'
import { isRefusal, type JdbcLayout } from './jdbc-tables.ts'

// A commit is one UPDATE that compares and swaps the location of the metadata file, in a transaction with the guard:
// begin, guard, update, commit. Whatever fails before COMMIT is sent was not applied. When the answer to COMMIT is lost,
// the row is read under its lock, which waits for a transaction that is still ending, so what is read then is final.

export interface Swap {
  identifier: TableIdentifier
  /** [catalog, namespace, name] */
  row: readonly [string, string, string]
  layout: JdbcLayout
  from: string
  to: string
}

const lookForMs = 10_000

export type Swapped = Exclude<CommitResult, { outcome: 'applied' }> | { outcome: 'swapped' }

/** Swaps in a transaction of its own, with the guard inside. */
export async function swapAlone(
  pool: pg.Pool,
  storage: Storage,
  swap: Swap,
  guard: Guard | undefined,
): Promise<Swapped> {
  let client: pg.PoolClient
  try {
    client = await pool.connect()
  } catch (error) {
    return { ...unavailable(swap, error), neverSent: true }
  }
  const { result, broken, lost } = await swapOn(client, swap, guard)
  // Closed first: as long as it is open its transaction may hold the row that is looked at.
  client.release(broken)
  return lost === undefined ? result : lookAgain(pool, storage, swap, lost)
}

interface Tried {
  result: Swapped
  /** The connection cannot be used any more. */
  broken?: Error
  /** The answer to COMMIT was lost, so the result is not known. */
  lost?: unknown
}

async function swapOn(client: pg.PoolClient, swap: Swap, guard: Guard | undefined): Promise<Tried> {
  const ignore = (): void => {} // the statement that is under way reports it
  client.on('error', ignore)
  let committing = false
  try {
    await client.query('begin')
    const result = await swapWithin(client, swap, guard)
    committing = result.outcome === 'swapped'
    await client.query(committing ? 'commit' : 'rollback')
    return { result }
  } catch (error) {
    const result = refusedBy(swap, error)
    return { result, broken: error as Error, ...(committing && !isRefusal(error) && { lost: error }) }
  } finally {
    client.off('error', ignore)
  }
}

/** Swaps in a transaction of the caller's, which nothing was applied in when a statement fails. */
export async function swapInside(client: TransactionClient, swap: Swap, guard: Guard | undefined): Promise<Swapped> {
  try {
    return await swapWithin(client, swap, guard)
  } catch (error) {
    return refusedBy(swap, error)
  }
}

/** Thrown inside a transaction of the caller's, so that it is rolled back. */
class NotSwapped extends Error {
  readonly result: Swapped

  constructor(result: Exclude<Swapped, { outcome: 'swapped' }>) {
    super(result.error.message, { cause: result.error })
    this.result = result
  }
}

/**
 * Swaps in a transaction that `run` begins and ends. Only what `run` says after the swap is doubted: a commit whose answer
 * was lost, or a rollback. A `run` that tries its work again may have committed an earlier try.
 */
export async function swapIn(
  run: InTransaction,
  pool: pg.Pool,
  storage: Storage,
  swap: Swap,
  guard: Guard | undefined,
): Promise<Swapped> {
  let hasBegun = false
  let hasSwapped = false
  try {
    await run(async (client) => {
      hasBegun = true
      const result = await swapWithin(client, swap, guard)
      if (result.outcome !== 'swapped') throw new NotSwapped(result)
      hasSwapped = true
    })
    return hasSwapped ? { outcome: 'swapped' } : refusedBegin(swap, new Error('its work was not called'))
  } catch (error) {
    if (hasSwapped) return lookAgain(pool, storage, swap, error)
    if (!hasBegun) return refusedBegin(swap, error)
    return error instanceof NotSwapped ? error.result : refusedBy(swap, error)
  }
}

/** The transaction was refused, for a fence that is lost for one: as if a guard had refused. */
function refusedBegin(swap: Swap, cause: unknown): Swapped {
  const table = tableName(swap.identifier)
  const message = `The transaction of a commit to ${table} was not begun: ${(cause as Error).message}`
  const error = new IcebergError('commit_refused', message, { details: { table }, cause })
  return { outcome: 'not_applied', why: 'refused', error }
}

/** Swaps in the transaction that the client is in. */
async function swapWithin(client: TransactionClient, swap: Swap, guard: Guard | undefined): Promise<Swapped> {
  const refused = await askGuard(swap.identifier, guard, client)
  if (refused !== undefined && refused.outcome !== 'applied') return refused
  const onlyTables = swap.layout === 'V1' ? `and (iceberg_type = 'TABLE' or iceberg_type is null)` : ''
  const { rowCount } = await client.query(
    `update iceberg_tables set metadata_location = $1, previous_metadata_location = $2
      where catalog_name = $3 and table_namespace = $4 and table_name = $5 and metadata_location = $2 ${onlyTables}`,
    [swap.to, swap.from, ...swap.row],
  )
  if (rowCount === 1) return { outcome: 'swapped' }
  return conflict(swap.identifier, 'another commit came first, or it was dropped or renamed')
}

function refusedBy(swap: Swap, error: unknown): Swapped {
  const code = (error as { code?: unknown }).code
  // A transaction of the guard's isolation that lost: serialization failure, deadlock.
  if (code === '40001' || code === '40P01') return conflict(swap.identifier, 'another commit came first', error)
  // A lock that was not had in time, and a server that is short of something: 55P03, class 53.
  if (!isRefusal(error) || code === '55P03' || String(code).startsWith('53')) return unavailable(swap, error)
  return { outcome: 'not_applied', why: 'rejected', error: explained(swap, error, 'Postgres refused it') }
}

function unavailable(swap: Swap, error: unknown): Extract<Swapped, { outcome: 'not_applied' }> {
  return { outcome: 'not_applied', why: 'unavailable', error: explained(swap, error, 'Postgres could not be reached') }
}

function explained(swap: Swap, error: unknown, what: string): IcebergError {
  const message = `${tableName(swap.identifier)} was not changed: ${what}: ${(error as Error).message}`
  return new IcebergError('catalog_unavailable', message, {
    details: { table: tableName(swap.identifier) },
    cause: error,
  })
}

async function lookAgain(pool: pg.Pool, storage: Storage, swap: Swap, cause: unknown): Promise<Swapped> {
  const error = new IcebergError(
    'commit_unknown',
    `Whether the transaction of a commit to ${tableName(swap.identifier)} was committed is not known.`,
    { details: { table: tableName(swap.identifier), metadataLocation: swap.to }, cause },
  )
  try {
    const now = await lockedLocation(pool, swap)
    if (now === swap.to) return { outcome: 'swapped' }
    if (now === swap.from) return unavailable(swap, cause)
    if (now === undefined) return { outcome: 'unknown', error } // dropped since
    const { metadataLog } = await readTableMetadata(await storage.read(now), now)
    const log = metadataLog.map((entry) => entry.metadataFile)
    if (log.includes(swap.to)) return { outcome: 'swapped' }
    // The log goes back to before our commit, and it is not in there.
    if (log.includes(swap.from)) return conflict(swap.identifier, 'another commit came first', cause)
  } catch {
    // Nothing more can be found out now.
  }
  return { outcome: 'unknown', error }
}

/** The row under its lock, which a transaction that is still ending holds; waits for that for a while. */
async function lockedLocation(pool: pg.Pool, swap: Swap): Promise<string | undefined> {
  const client = await pool.connect()
  let broken: Error | undefined
  try {
    await client.query(`begin`)
    await client.query(`set local lock_timeout = '${lookForMs}ms'`)
    const { rows } = await client.query<{ metadata_location: string }>(
      `select metadata_location from iceberg_tables
        where catalog_name = $1 and table_namespace = $2 and table_name = $3 for update`,
      [...swap.row],
    )
    await client.query('rollback')
    return rows[0]?.metadata_location
  } catch (error) {
    broken = error as Error
    throw error
  } finally {
    client.release(broken)
  }
}
