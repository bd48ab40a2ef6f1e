import { describe, expect, test } from 'vitest'
import { form, identifier, join, sql } from './sql.ts'
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

describe('form', () => {
  const asking = form<object, { ids: string; at: number }>(
    (_, { ids, at }, shape) => sql`a = ${ids} and ${sql`b = ${at}`} and c = ${ids} and d = ${shape}`,
  )
  const engine = {}

  test('a value that is named twice is one parameter', () => {
    const filled = asking(engine, { ids: 'x', at: 1 }, 'wide')
    expect(filled).toMatchObject({ text: 'a = $1 and b = $2 and c = $1 and d = $3', values: ['x', 1, 'wide'] })
  })

  test('is filled in anew each time', () => {
    expect(asking(engine, { ids: 'y', at: 2 }, 'wide').values).toEqual(['y', 2, 'wide'])
    expect(asking(engine, { ids: 'z', at: 3 }).values).toEqual(['z', 3, ''])
  })

  test('can be a part of another statement', () => {
    const inside = sql`select ${0} where ${asking(engine, { ids: 'x', at: 1 })} or ${5}`
    expect(inside.text).toBe('select $1 where a = $2 and b = $3 and c = $4 and d = $5 or $6')
    expect(inside.values).toEqual([0, 'x', 1, 'x', '', 5])
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
