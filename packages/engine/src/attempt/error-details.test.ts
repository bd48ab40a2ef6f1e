import { expect, test } from 'vitest'
import { errorDetails, errorLimits } from './error-details.ts'

test('the details of an error are its stack and its causes, the nearest first', () => {
  const details = errorDetails(new Error('outer', { cause: new TypeError('middle', { cause: 'inner' }) }))
  expect(details?.stack).toMatch(/^Error: outer\n +at .*error-details\.test\.ts/)
  expect(details?.causes).toEqual([
    { error: 'TypeError: middle', stack: expect.stringContaining('error-details.test.ts') as string },
    { error: 'inner' },
  ])
})

test('the details of an error are bounded, also where it is its own cause', () => {
  const deep = new Error('x'.repeat(100_000))
  deep.stack = 's'.repeat(100_000)
  deep.cause = new Error('again', { cause: deep })
  const many = new AggregateError(
    Array.from({ length: 100 }, () => deep),
    'many',
  )
  const details = errorDetails(many)
  expect(details?.causes).toHaveLength(errorLimits.causes)
  expect(JSON.stringify(details).length).toBeLessThan(25_000)
  expect(errorDetails(deep)?.stack).toHaveLength(errorLimits.stack)
})

test('what is thrown and is no error has no details', () => {
  expect(errorDetails('no')).toBeUndefined()
})
