import { describe, expect, test } from 'vitest'
import { identifier, join, sql } from './sql.ts'
import { timestamp } from './types.ts'

describe('sql', () => {
  test('numbers its values through nested fragments', () => {
    const inner = sql`b = ${2} and c = ${3}`
    const statement = sql`select ${identifier('we"ird')} where a = ${1} and ${inner} or ${sql`true`} and d = ${4}`
    expect(statement.text).toBe('select "we""ird" where a = $1 and b = $2 and c = $3 or true and d = $4')
    expect(statement.values).toEqual([1, 2, 3, 4])
  })

  test('a fragment can be used twice', () => {
    const fence = sql`attempt_id = ${'f'}`
    expect(sql`${fence} or ${fence}`).toMatchObject({ text: 'attempt_id = $1 or attempt_id = $2', values: ['f', 'f'] })
  })

  test('joins fragments', () => {
    expect(join([sql`a = ${1}`, sql`b`, sql`c = ${2}`], ' and ').text).toBe('a = $1 and b and c = $2')
    expect(join([], ', ').text).toBe('')
  })
})

describe('timestamp', () => {
  test.each([
    ['2026-04-25 14:35:00+00', '2026-04-25T14:35:00.000000Z'],
    ['2026-04-25 14:35:00.123456+00', '2026-04-25T14:35:00.123456Z'],
    ['2026-04-25 01:05:00.12+05:30', '2026-04-24T19:35:00.120000Z'],
    ['2026-04-25 14:35:00.5-08', '2026-04-25T22:35:00.500000Z'],
    ['infinity', 'infinity'],
  ])('%s is %s', (text, expected) => {
    expect(timestamp(text)).toBe(expected)
  })
})
