import { inspect } from 'node:util'
import { expect, test } from 'vitest'
import type { Field } from '../../src/index.ts'
import { bed, field } from './bed.ts'

const { newTable, rows } = bed()

const zeros = Array.from({ length: 60 }, (_, at) => (at % 7 === 6 ? null : at % 2 === 0 ? 0 : -0))
const other = (n: number | null): number | null => (n === null ? null : -n)

test.each<[string, Field[], (n: number | null) => Record<string, unknown>]>([
  ['at the top', [field(1, 'f', { type: 'float' }), field(2, 'd', { type: 'double' })], (n) => ({ f: n, d: other(n) })],
  [
    'inside others',
    [
      field(1, 'in', { type: 'struct', fields: [field(2, 'x', { type: 'double' })] }),
      field(3, 'list', { type: 'list', elementId: 4, element: { type: 'float' }, elementRequired: false }),
    ],
    (n) => ({ in: { x: n }, list: [n, other(n)] }),
  ],
])('both zeros are read as they were written, also where they repeat: %s', async (_, fields, row) => {
  const table = await newTable({ schema: { fields } })
  const written = zeros.map(row)
  await table.append(written)
  // As texts, in which the two differ.
  const options = { depth: 5, maxArrayLength: 100 }
  expect(inspect(await rows(table), options)).toBe(inspect(written, options))
})
