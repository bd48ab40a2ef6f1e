import { expect, test } from 'vitest'
import { Turns } from './turns.ts'

/** Turns of which one is taken; `go` ends it, and everything that waits runs in the order it is let in. */
function busy() {
  const turns = new Turns(1)
  const order: string[] = []
  const taken: { go: () => void } = { go: () => {} }
  const first = turns.take('first', () => new Promise<void>((resolve) => (taken.go = resolve)))
  const ask = (caller: string, name: string) => turns.take(caller, async () => void order.push(name))
  return { turns, order, ask, first, go: () => taken.go() }
}

test('one caller who asks for much does not hold up another', async () => {
  const { order, ask, first, go } = busy()
  const asked = [...['a1', 'a2', 'a3'].map((name) => ask('a', name)), ask('b', 'b1'), ask('c', 'c1'), ask('b', 'b2')]
  go()
  await Promise.all([first, ...asked])
  expect(order).toEqual(['a1', 'b1', 'c1', 'a2', 'b2', 'a3'])
})

test('the 201st of one caller who waits is refused with 503, and no other caller is', async () => {
  const { turns, order, ask, first, go } = busy()
  const asked = Array.from({ length: 200 }, (_, nth) => ask('a', `a${nth}`))
  await expect(ask('a', 'too many')).rejects.toMatchObject({
    code: 'overloaded',
    status: 503,
    headers: { 'retry-after': '5' },
  })
  asked.push(
    ask('b', 'b'),
    turns.takeUnrefused('a', async () => void order.push('changed')),
  )
  go()
  await Promise.all([first, ...asked])
  expect(order).toHaveLength(202)
  expect(order.indexOf('b')).toBe(1)
  expect(order.at(-1)).toBe('changed')
})

test('work that fails gives its place to the next', async () => {
  const turns = new Turns(1)
  const failed = turns.take('a', async () => {
    throw new Error('no')
  })
  const next = turns.take('a', async () => 'next')
  await expect(failed).rejects.toThrow('no')
  expect(await next).toBe('next')
})
