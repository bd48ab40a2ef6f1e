import { describe, expect, test } from 'vitest'
import { madeUpAttempt } from '../../test/attempts.ts'
import type { Attempt } from '../attempt/attempt.ts'
import type { Outcome } from '../attempt/settle.ts'
import { failure } from '../database/failure.ts'
import type { Settled } from '../lifecycle/outcome.ts'
import { silentLogger } from '../logger.ts'
import { Settler } from './settler.ts'

const completed: Outcome = { kind: 'completed', result: 'null', steps: [], chain: [] }
const errorOf = (code: string) => failure(Object.assign(new Error(code), { code }), 'complete', 'unknown')

/** A settler whose writes fail as given, one after another, and then land. */
function settlerAfter(...failures: unknown[]) {
  const tries: number[] = []
  const settler = new Settler(
    async (some) => {
      tries.push(some.length)
      if (tries.length <= failures.length) throw failures[tries.length - 1]
      return some.map(() => ({ settled: true }))
    },
    10,
    silentLogger,
  )
  return { settler, tries }
}

describe('an outcome is written again', () => {
  test.each([
    'ECONNREFUSED',
    'ECONNRESET',
    'EHOSTUNREACH',
    'ENETUNREACH',
    'ETIMEDOUT',
    '08006',
    '25006',
    '40001',
    '40P01',
    '53100',
    '53200',
    '53300',
    '55P03',
    '57014',
    '57P01',
    '57P05',
  ])('after %s', async (code) => {
    const { settler, tries } = settlerAfter(errorOf(code))
    expect(await settler.report(madeUpAttempt(), completed)).toEqual({ settled: true })
    expect(tries).toEqual([1, 1])
  })
})

test('an outcome that can never be written does not keep others from being written', async () => {
  const { settler, tries } = settlerAfter(errorOf('22P05'), errorOf('22P05'))
  const reports = [settler.report(madeUpAttempt(), completed), settler.report(madeUpAttempt(), completed)]
  expect(await Promise.all(reports)).toEqual([{ settled: false, why: 'not_written' }, { settled: true }])
  expect(tries).toEqual([2, 1, 1])
})

test('outcomes that are too much for one statement are written one by one', async () => {
  const tries: number[] = []
  const write = async (some: readonly unknown[]): Promise<{ settled: true }[]> => {
    tries.push(some.length)
    if (some.length > 1) throw errorOf('57014')
    return some.map(() => ({ settled: true }))
  }
  const settler = new Settler(write, 10, silentLogger)
  const reports = [settler.report(madeUpAttempt(), completed), settler.report(madeUpAttempt(), completed)]
  expect(await Promise.all(reports)).toEqual([{ settled: true }, { settled: true }])
  expect(tries).toEqual([2, 2, 2, 1, 1])
})

test('what waits to be repeated is tried once more, at once, when it is given up', async () => {
  const away = errorOf('ECONNREFUSED')
  const { settler, tries } = settlerAfter(away, away, away, away, away)
  const report = settler.report(madeUpAttempt(), completed)
  await expect.poll(() => tries.length).toBe(5) // the next would be a second later, and more
  settler.giveUp()
  expect(await report).toEqual({ settled: true })
})

test('what is not answered is given up', async () => {
  const settler = new Settler(() => new Promise(() => {}), 10, silentLogger)
  const before = settler.report(madeUpAttempt(), completed)
  settler.giveUp()
  const after = settler.report(madeUpAttempt(), completed)
  expect(await Promise.all([before, after])).toEqual(Array(2).fill({ settled: false, why: 'not_written' }))
})

/** A settler whose writes of this attempt are not answered, and how many outcomes each of its writes had. */
function settlerWaitingFor(...held: readonly Attempt[]) {
  const writes: number[] = []
  const write = async (some: readonly { attempt: Attempt }[]): Promise<Settled[]> => {
    writes.push(some.length)
    if (!some.some(({ attempt }) => held.includes(attempt))) return some.map(() => ({ settled: true }))
    if (some.length > 1) throw errorOf('55P03')
    return new Promise(() => {})
  }
  return { settler: new Settler(write, 10, silentLogger), writes }
}

test('one outcome that waits for a lock keeps none of its batch waiting', async () => {
  const held = madeUpAttempt()
  const { settler, writes } = settlerWaitingFor(held)
  void settler.report(held, completed)
  const others = Array.from({ length: 6 }, () => settler.report(madeUpAttempt(), completed))
  expect(await Promise.all(others)).toEqual(Array(6).fill({ settled: true }))
  expect(writes[0]).toBe(7)
  expect(settler.isWriting(held)).toBe(true)
})

test('an attempt whose handler was killed is settled by itself, and keeps no other waiting', async () => {
  const killed = Array.from({ length: 3 }, () => madeUpAttempt())
  for (const attempt of killed) attempt.handlerKilled()
  const { settler, writes } = settlerWaitingFor(...killed)
  for (const attempt of killed) void settler.report(attempt, completed)
  await expect.poll(() => writes).toEqual([1, 1]) // the third would be one too many at a time
  const others = [settler.report(madeUpAttempt(), completed), settler.report(madeUpAttempt(), completed)]
  expect(await Promise.all(others)).toEqual([{ settled: true }, { settled: true }])
  expect(writes).toEqual([1, 1, 2])
})
