import fc from 'fast-check'
import { expect, test } from 'vitest'
import {
  applyTransform,
  compareValues,
  transformedType,
  valueFromBytes,
  type Field,
  type SortColumn,
  type Transform,
  type Type,
  type Value,
} from '../../src/index.ts'
import { bed, entriesOf, field } from './bed.ts'

const { newTable, rows } = bed()

// Names that the writer has uses of its own for.
const types: Readonly<Record<string, Type>> = {
  c1: { type: 'int' },
  part: { type: 'long' },
  k0: { type: 'string' },
  new_rows: { type: 'timestamp' },
  c0: { type: 'date' },
  bin: { type: 'binary' },
  dec: { type: 'decimal', precision: 4, scale: 1 },
}
const fields: Field[] = Object.entries(types).map(([name, type], index) => field(index + 1, name, type))
const small = fc.bigInt({ min: -(10n ** 13n), max: 10n ** 13n })
const row = fc.record({
  c1: fc.option(fc.integer({ min: -40, max: 40 })),
  part: fc.option(small),
  k0: fc.option(fc.string({ unit: fc.constantFrom('a', 'b', 'é', '\uffff', '😀'), maxLength: 4 })),
  new_rows: fc.option(small.map((n) => n * 100n)),
  c0: fc.option(fc.integer({ min: -1000, max: 1000 })),
  bin: fc.option(fc.uint8Array({ maxLength: 3 })),
  dec: fc.option(fc.bigInt({ min: -9999n, max: 9999n })),
})
const identity: Transform = { name: 'identity' }
const bucket: Transform = { name: 'bucket', buckets: 4 }
const truncate = (width: number): Transform => ({ name: 'truncate', width })
const transforms: readonly (readonly [string, Transform])[] = [
  ['c1', { name: 'identity' }],
  ['c1', bucket],
  ['c1', truncate(10)],
  ['part', bucket],
  ['part', truncate(100)],
  ['k0', bucket],
  ['k0', truncate(1)],
  ['new_rows', { name: 'year' }],
  ['new_rows', { name: 'month' }],
  ['new_rows', { name: 'day' }],
  ['new_rows', { name: 'hour' }],
  ['new_rows', { name: 'void' }],
  ['c0', { name: 'month' }],
  ['c0', bucket],
  ['bin', truncate(1)],
  ['bin', bucket],
  ['dec', truncate(50)],
  ['dec', bucket],
]
const term = fc
  .record({
    of: fc.constantFrom(...transforms),
    direction: fc.constantFrom('asc' as const, 'desc' as const),
    nullOrder: fc.constantFrom('nulls-first' as const, 'nulls-last' as const),
  })
  .map(({ of: [column, transform], ...rest }): SortColumn => ({ column, transform, ...rest }))

/** As Java compares rows by a sort order. */
function compare(order: readonly SortColumn[], a: Readonly<Record<string, unknown>>, b: typeof a): number {
  for (const { column, transform = identity, direction, nullOrder } of order) {
    const type = types[column] as Type
    const [x, y] = [a, b].map((r) => applyTransform(transform, type, r[column] as Value | null))
    if (x === null || y === null || x === undefined || y === undefined) {
      if (x === y) continue
      return (x === null) === (nullOrder === 'nulls-first') ? -1 : 1
    }
    const compared = compareValues(transformedType(transform, type) as Type, x, y)
    if (compared !== 0) return direction === 'desc' ? -compared : compared
  }
  return 0
}

test('rows are in the order of the transforms, with nulls where they are wanted', async () => {
  const table = await newTable({ schema: { fields } })
  await fc.assert(
    fc.asyncProperty(
      fc.uniqueArray(term, {
        minLength: 1,
        maxLength: 3,
        selector: ({ column, transform }) => `${column} ${transform?.name}`,
      }),
      fc.array(row, { minLength: 2, maxLength: 20 }),
      async (order, given) => {
        await table.updateSortOrder(order)
        await table.overwrite(given)
        const read = await rows(table)
        expect(read).toHaveLength(given.length)
        for (const [index, next] of read.slice(1).entries()) {
          expect(compare(order, read[index] ?? {}, next)).toBeLessThanOrEqual(0)
        }
        const [entry] = await entriesOf(table)
        expect(entry?.file.sortOrderId).toBe(table.metadata.defaultSortOrderId)
      },
    ),
    { numRuns: 60 },
  )
})

test('rows are sorted by what is inside of structs', async () => {
  const table = await newTable({
    schema: {
      fields: [
        field(1, 'id', { type: 'int' }),
        field(2, 'at', {
          type: 'struct',
          fields: [field(3, 'x', { type: 'double' }), field(4, 's', { type: 'string' })],
        }),
      ],
    },
  })
  await table.updateSortOrder([{ column: 'at.s', transform: truncate(1), direction: 'desc' }, { column: 'at.x' }])
  await table.append([
    { id: 1, at: { x: 2, s: 'ab' } },
    { id: 2, at: null },
    { id: 3, at: { x: 1, s: 'az' } },
    { id: 4, at: { x: Number.NaN, s: 'b' } },
    { id: 5, at: { x: 3, s: 'b' } },
  ])
  expect((await rows(table)).map((r) => r['id'])).toEqual([5, 4, 3, 1, 2])
})

test('a column that rows are sorted by keeps its bounds, unless its order is lost', async () => {
  const table = await newTable({
    schema: { fields: [field(1, 'kept', { type: 'int' }), field(2, 'lost', { type: 'int' })] },
    properties: { 'write.metadata.metrics.default': 'none' },
  })
  await table.updateSortOrder([
    { column: 'kept', transform: truncate(10) },
    { column: 'lost', transform: bucket },
  ])
  await table.append([{ kept: 5, lost: 6 }])
  const [entry] = await entriesOf(table)
  expect([...(entry?.file.lowerBounds ?? [])].map(([id, b]) => [id, valueFromBytes({ type: 'int' }, b)])).toEqual([
    [1, 5],
  ])
})
