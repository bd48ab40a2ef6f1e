import { expect } from 'vitest'
import type { PausePoint } from '../../src/database/database.ts'
import type { Engine } from '../../src/engine.ts'
import type { Bed } from '../bed.ts'
import { LosingProxy } from './losing-proxy.ts'
import { comparable, restoreRows, tableRows, type TableRows } from './table-rows.ts'

/** Something an engine does in several statements: how to get there, and the call, which can be made twice. */
export interface Path {
  name: string
  prepare: (engine: Engine) => Promise<() => Promise<unknown>>
}

export type Break = 'before the statement' | 'after the statement'

/** Runs one path again and again from the same state, whole and broken off at any of its statements. */
export interface Breaker {
  /** Gets there, and makes the call undisturbed: the names of its statements, and its answer. */
  whole(path: Path): Promise<{ statements: string[]; answer: unknown }>
  /** Makes the same call with its connection cut at the nth statement: all or nothing, and it can be repeated. */
  expectAllOrNothing(nth: number, how: Break): Promise<void>
  close(): Promise<void>
}

/** Ends a session of Postgres's, and resolves when it is gone. Asked again and again: Postgres's own wait is slow. */
export async function endBackend(bed: Bed, processId: number | undefined): Promise<void> {
  await bed.query('select pg_terminate_backend($1)', [processId])
  const there = () => bed.query('select from pg_stat_activity where pid = $1', [processId])
  while ((await there()).length > 0);
}

export async function openBreaker(bed: Bed): Promise<Breaker> {
  const proxy = await LosingProxy.open(bed.url)
  let seen: string[] = []
  let breakAt: { nth: number; how: Break } | undefined
  const pausePoint: PausePoint = async ({ statement, processId }) => {
    if (statement === 'wake') return // sent by a timer, not by the call
    seen.push(statement)
    if (breakAt === undefined || seen.length !== breakAt.nth) return
    if (breakAt.how === 'after the statement') proxy.loseNextAnswer()
    else await endBackend(bed, processId)
  }
  // No wake-up may come between: with one a minute there is none, and close() sends what is waiting.
  const engine = await bed.open({ database: proxy.url, workerId: 'worker', wakeDelayMs: 60_000 }, { pausePoint })

  const rows = async (): Promise<TableRows> => ({
    ...(await tableRows(bed)),
    user_rows: await bed.query('select name from user_rows order by name'),
  })
  let before: TableRows = {}
  let final: TableRows = {}
  let call: () => Promise<unknown> = () => Promise.reject(new Error('no path'))

  return {
    whole: async (path) => {
      await bed.reset()
      await bed.query('delete from user_rows')
      call = await path.prepare(engine)
      before = await rows()
      seen = []
      const answer = await call()
      final = comparable(await rows())
      return { statements: [...seen], answer }
    },
    expectAllOrNothing: async (nth, how) => {
      await restoreRows(bed, before)
      await bed.query('delete from user_rows')
      seen = []
      breakAt = { nth, how }
      const error = await call().then(
        () => new Error(`the call went through, broken off at statement ${nth}`),
        (thrown: unknown) => thrown,
      )
      breakAt = undefined
      const after = await rows()
      expect(error).toMatchObject({ code: 'database_unavailable', retryable: true })
      const nothing = JSON.stringify(after) === JSON.stringify(before)
      if (!nothing) expect(comparable(after)).toEqual(final)
      await call()
      expect(comparable(await rows())).toEqual(final)
    },
    close: () => proxy.close(),
  }
}
