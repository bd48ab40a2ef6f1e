import type { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { setTimeout as delay } from 'node:timers/promises'
import { PermanentError, type TransactionClient } from '@fencepost/engine'
import pg from 'pg'
import { from as copyFrom } from 'pg-copy-streams'

const newline = 10
const reportEveryMs = 100
/** Postgres's codes for values and files that are not what they should be. */
const dataErrors = /^22/

export interface CopyOptions {
  signal: AbortSignal
  /** Called now and then with the number of lines so far, and not again before it has resolved. */
  onLines?: (lines: number) => Promise<unknown>
}

/**
 * Copies a CSV with a head into a table, in the transaction of `client`. Lines pass through as they come; Postgres reads
 * them. Answers how many rows there are.
 */
export async function copyCsv(
  client: TransactionClient,
  table: string,
  source: Readable,
  { signal, onLines }: CopyOptions,
): Promise<number> {
  const target = client.query(copyFrom(`copy ${table} from stdin with (format csv, header match)`))
  try {
    await pipeline(source, (chunks: AsyncIterable<Buffer>) => counting(chunks, onLines), target, { signal })
  } catch (error) {
    throw asPermanent(error)
  }
  return target.rowCount
}

// What Postgres cannot read today it cannot read tomorrow.
function asPermanent(error: unknown): unknown {
  if (!(error instanceof pg.DatabaseError) || !dataErrors.test(error.code ?? '')) return error
  return new PermanentError(`Postgres cannot read the CSV: ${error.message} (${error.where ?? 'its head'})`, {
    cause: error,
  })
}

/** Passes everything on, slowly if so wished, and says how far it has come. */
async function* counting(chunks: AsyncIterable<Buffer>, onLines: CopyOptions['onLines']): AsyncGenerator<Buffer> {
  const linesPerSecond = Number(process.env['CARBON_LINES_PER_SECOND'] ?? Infinity)
  let lines = 0
  let reportedAt = performance.now()
  for await (const chunk of chunks) {
    let here = 0
    for (let at = chunk.indexOf(newline); at !== -1; at = chunk.indexOf(newline, at + 1)) here += 1
    lines += here
    yield chunk
    await delay((here / linesPerSecond) * 1000)
    if (performance.now() - reportedAt < reportEveryMs) continue
    reportedAt = performance.now()
    await onLines?.(lines - 1) // the first is the head
  }
}
