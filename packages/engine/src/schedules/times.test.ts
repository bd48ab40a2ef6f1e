import { describe, expect, test } from 'vitest'
import { checkRule, dueTimes, lastDueTime, nextTime, type Rule } from './times.ts'

const at = (text: string) => Date.parse(text)
const times = (rule: Rule, from: string, count: number): string[] => {
  const found: number[] = []
  for (let ms = at(from); found.length < count;) {
    ms = nextTime(rule, ms)
    found.push(ms)
  }
  return found.map((ms) => new Date(ms).toISOString())
}
const berlin = (cron: string): Rule => ({ cron, timeZone: 'Europe/Berlin' })

describe('by cron', () => {
  test('a time is read on the clock of its zone', () => {
    expect(times(berlin('0 3 * * *'), '2026-01-15T00:00:00Z', 1)).toEqual(['2026-01-15T02:00:00.000Z'])
    expect(times(berlin('0 3 * * *'), '2026-07-15T00:00:00Z', 1)).toEqual(['2026-07-15T01:00:00.000Z'])
  })

  test('a time in the hour that clocks skip is due in the hour after it, once', () => {
    expect(times(berlin('30 2 * * *'), '2026-03-28T12:00:00Z', 2)).toEqual([
      '2026-03-29T01:30:00.000Z', // 03:30, for 02:30 is not there
      '2026-03-30T00:30:00.000Z',
    ])
  })

  test('a time that comes twice when clocks go back is due the first time only', () => {
    expect(times(berlin('30 2 * * *'), '2026-10-24T12:00:00Z', 2)).toEqual([
      '2026-10-25T00:30:00.000Z',
      '2026-10-26T01:30:00.000Z',
    ])
  })

  test.each(['2026-10-25T01:10:00Z', '2026-10-25T01:40:00Z'])(
    'and not again when it is dealt with late, at %s',
    (now) => {
      const first = at('2026-10-25T00:30:00Z')
      expect(lastDueTime(berlin('30 2 * * *'), first, at(now))).toEqual({
        dueMs: first,
        nextMs: at('2026-10-26T01:30:00Z'),
      })
    },
  )

  test('every half hour goes on through the hour that comes twice', () => {
    expect(times(berlin('*/30 * * * *'), '2026-10-25T00:00:00Z', 4)).toEqual([
      '2026-10-25T00:30:00.000Z',
      '2026-10-25T01:00:00.000Z',
      '2026-10-25T01:30:00.000Z',
      '2026-10-25T02:00:00.000Z',
    ])
  })

  test('a sixth field, in front, is seconds', () => {
    expect(times({ cron: '15 * * * * *', timeZone: 'UTC' }, '2026-01-01T00:00:00Z', 1)).toEqual([
      '2026-01-01T00:00:15.000Z',
    ])
  })

  test.each([
    ['* * * *', 'UTC', /has 4 fields/],
    ['', 'UTC', /has 1 fields/],
    ['60 * * * *', 'UTC', /not a cron expression/],
    ['0 0 31 2 *', 'UTC', /not a cron expression/],
    ['* * * * *', 'Nowhere/Land', /not a time zone/],
    ['H * * * *', 'UTC', /has an H/],
    ['0 H(0-5) * * *', 'UTC', /has an H/],
  ])('%j in %s is refused', (cron, timeZone, message) => {
    expect(() => checkRule({ cron, timeZone }, 'nightly')).toThrow(message)
  })
})

describe.each<[string, Rule]>([
  ['by cron', { cron: '*/10 * * * *', timeZone: 'UTC' }],
  ['by interval', { everyMs: 600_000 }],
])('due times %s', (_, rule) => {
  const first = at('2026-01-01T00:10:00Z')

  test('are all of those until now, and the next one is after it', () => {
    expect(dueTimes(rule, first, at('2026-01-01T00:35:00Z'), 10)).toEqual({
      dueMs: [first, first + 600_000, first + 1_200_000],
      nextMs: at('2026-01-01T00:40:00Z'),
    })
  })

  test('are no more than the limit, and the next one is the first that is left', () => {
    expect(dueTimes(rule, first, at('2026-01-01T00:35:00Z'), 2).nextMs).toBe(first + 1_200_000)
  })

  test('have a last one, which may be now', () => {
    const last = { dueMs: at('2026-01-01T00:30:00Z'), nextMs: at('2026-01-01T00:40:00Z') }
    expect(lastDueTime(rule, first, at('2026-01-01T00:30:00Z'))).toEqual(last)
    expect(lastDueTime(rule, first, at('2026-01-01T00:39:59.999Z'))).toEqual(last)
  })
})
