import { expect, test } from 'vitest'
import { Lookup } from './lookup.ts'

/** A lookup whose statements end when they are told to. */
function held() {
  const asked: {
    keys: readonly string[]
    answer: (found: Map<string, string>) => void
    fail: (error: Error) => void
  }[] = []
  const lookup = new Lookup<string>(
    (keys) =>
      new Promise((answer, fail) => {
        asked.push({ keys, answer, fail })
      }),
    3,
  )
  return { lookup, asked }
}
const turn = () => new Promise((resolve) => setImmediate(resolve))

test('what is asked for at the same time is one statement, and everybody gets his own', async () => {
  const { lookup, asked } = held()
  const answers = Promise.all(['a', 'b', 'a'].map((key) => lookup.find(key)))
  await turn()
  expect(asked.map(({ keys }) => keys)).toEqual([['a', 'b']])
  asked[0]?.answer(new Map([['a', 'A']]))
  expect(await answers).toEqual(['A', undefined, 'A'])
})

test('a question is never answered by a statement that had begun before it', async () => {
  const { lookup, asked } = held()
  const first = lookup.find('a')
  await turn()
  const second = lookup.find('a')
  await turn()
  expect(asked).toHaveLength(2)
  asked[0]?.answer(new Map([['a', 'old']]))
  asked[1]?.answer(new Map([['a', 'new']]))
  expect([await first, await second]).toEqual(['old', 'new'])
})

test('questions beyond the size of a batch, or while two statements are under way, wait for their turn', async () => {
  const { lookup, asked } = held()
  const answers = Promise.all(['a', 'b', 'c', 'd', 'e', 'f', 'g'].map((key) => lookup.find(key)))
  for (let nth = 0; nth < 5; nth += 1) await turn()
  expect(asked.map(({ keys }) => keys)).toEqual([
    ['a', 'b', 'c'],
    ['d', 'e', 'f'],
  ])
  asked[0]?.answer(new Map())
  await turn()
  await turn()
  expect(asked[2]?.keys).toEqual(['g'])
  asked[1]?.answer(new Map())
  asked[2]?.answer(new Map([['g', 'G']]))
  expect((await answers).at(-1)).toBe('G')
})

test('a statement that fails fails those who waited for it, and no one else', async () => {
  const { lookup, asked } = held()
  const failing = lookup.find('a')
  await turn()
  asked[0]?.fail(new Error('away'))
  await expect(failing).rejects.toThrow('away')
  const next = lookup.find('a')
  await turn()
  asked[1]?.answer(new Map([['a', 'A']]))
  expect(await next).toBe('A')
})
