import { createHash } from 'node:crypto'
import { expect, test } from 'vitest'
import { scaled } from './independent.ts'
import { sampleCsv, sampleRows } from './sample.ts'

test('the sample is the same wherever it is made', () => {
  const csv = sampleCsv()
  expect(csv.split('\n')).toHaveLength(sampleRows + 2) // its head, and the end of the last line
  expect(createHash('sha256').update(csv).digest('hex')).toBe(
    'c423a7051c5d26c57f83a5cabd85967c51780915f8e6c15c037290c08611a03f',
  )
})

test.each([
  ['12.5', 3, 12_500n],
  ['0.000731', 6, 731n],
  ['7', 3, 7_000n],
  ['1.5000', 3, 1_500n],
])('%s with %i digits is %s', (decimal, digits, whole) => {
  expect(scaled(decimal, digits)).toBe(whole)
})

test.each(['1.2345', '', '-1', '1e3', '1.2.3x'])('%j is no such number', (decimal) => {
  expect(() => scaled(decimal, 3)).toThrow('is not a number with at most 3 digits')
})
