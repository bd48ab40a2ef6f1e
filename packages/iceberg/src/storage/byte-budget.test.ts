import { expect, test } from 'vitest'
import { ByteBudget } from './byte-budget.ts'

test('no more bytes are in use than the budget has, and everybody gets a turn', async () => {
  const budget = new ByteBudget(10)
  let [inUse, most, done] = [0, 0, 0]
  await Promise.all(
    [4, 4, 4, 10, 25, 1, 3, 6].map((bytes) =>
      budget.with(bytes, async () => {
        inUse += Math.min(bytes, 10)
        most = Math.max(most, inUse)
        await new Promise(setImmediate)
        inUse -= Math.min(bytes, 10)
        done += 1
      }),
    ),
  )
  expect({ most, done, left: budget.usedBytes }).toEqual({ most: 10, done: 8, left: 0 })
})

test('work that fails gives its bytes back', async () => {
  const budget = new ByteBudget(10)
  await expect(budget.with(10, () => Promise.reject(new Error('connection reset')))).rejects.toThrow('connection reset')
  expect(await budget.with(10, () => Promise.resolve('done'))).toBe('done')
  expect(budget.usedBytes).toBe(0)
})
