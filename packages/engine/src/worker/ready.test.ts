import { expect, test } from 'vitest'
import { Ready } from './ready.ts'

test('items are taken in the order in which they came', () => {
  const ready = new Ready<number>()
  ready.add([1, 2], 10)
  ready.add([], 20)
  ready.add([3], 30)
  expect(ready.length).toBe(3)
  expect([ready.shift(), ready.shift(), ready.shift(), ready.shift()]).toEqual([1, 2, 3, undefined])
  expect(ready.length).toBe(0)
})

test('those that have waited too long are taken, and no other', () => {
  const ready = new Ready<number>()
  expect(ready.oldest).toBe(Infinity)
  ready.add([1, 2, 3], 10)
  ready.add([4], 20)
  ready.shift()
  expect(ready.oldest).toBe(10)
  expect(ready.takeOlderThan(10)).toEqual([])
  expect(ready.takeOlderThan(20)).toEqual([2, 3])
  expect(ready.oldest).toBe(20)
  expect(ready.takeAll()).toEqual([4])
  expect(ready).toMatchObject({ length: 0, oldest: Infinity })
})
