import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { applyTransform, planFiles, valueToBytes, type Filter, type PartitionSpec, type ScannedTable, type Transform, type Type, type Value } from '../../src/index.ts' // prettier-ignore
import { bindFilter, type Term } from '../../src/scan/filter.ts'
import { projectTerm } from '../../src/scan/partition-filter.ts'
import { mayMatch } from '../../src/scan/value-range.ts'
import { optional, Workshop } from './hand-made-table.ts'

let workshop: Workshop
beforeAll(async () => {
  workshop = await Workshop.open()
})
afterAll(async () => {
  await workshop.close()
})

const namesOf = async (table: ScannedTable, filter: Filter): Promise<string[]> => {
  const names: string[] = []
  for await (const files of planFiles(table, { filter })) {
    for (const { file } of files) names.push(file.filePath.split('/').at(-1) ?? '')
  }
  return names
}

describe('a filter', () => {
  const fields = [optional(1, 'id', 'int'), optional(2, 's', 'string'), optional(3, 'd', { type: 'double' })]
  const ids = '{id: 1, s: 2, d: 3}'

  it('gives the rows that fulfil it, with two truths', async () => {
    const table = workshop.table({ schemas: [fields] })
    const values = "(1, 'ab', 'nan'::double), (2, 'b', -1.0), (null, null, null)"
    await table.data(`select * from (values ${values}) as t(id, s, d)`, ids)
    const cases: [Filter, (number | null)[]][] = [
      [{ op: '=', column: 'id', value: 1 }, [1]],
      [{ op: '!=', column: 'id', value: 1 }, [2, null]],
      [{ op: '>=', column: 'id', value: 1 }, [1, 2]],
      [{ op: 'not', filter: { op: '<', column: 'id', value: 2 } }, [2, null]],
      [{ op: 'in', column: 'id', values: [2, 3] }, [2]],
      [{ op: 'in', column: 'id', values: [] }, []],
      [{ op: 'not in', column: 'id', values: [2, 3] }, [1, null]],
      [{ op: 'is null', column: 's' }, [null]],
      [{ op: 'is not null', column: 's' }, [1, 2]],
      [{ op: 'is nan', column: 'd' }, [1]],
      [{ op: 'is not nan', column: 'd' }, [2, null]],
      [{ op: '>', column: 'd', value: 5 }, [1]],
      [{ op: 'starts with', column: 's', value: 'a' }, [1]],
      [{ op: 'not starts with', column: 's', value: 'a' }, [2, null]],
      [{ op: 'or', filters: [{ op: '=', column: 's', value: 'b' }, { op: 'is nan', column: 'd' }] }, [1, 2]],
      [{ op: 'and', filters: [{ op: '=', column: 's', value: 'b' }, { op: 'is nan', column: 'd' }] }, []],
      [{ op: 'and', filters: [] }, [1, 2, null]],
      [{ op: 'or', filters: [] }, []],
    ] // prettier-ignore
    for (const [filter, expected] of cases) {
      const rows = await table.rows({ filter, columns: ['id'] })
      expect(rows.map(({ id }) => id), JSON.stringify(filter)).toEqual(expected) // prettier-ignore
    }
  })

  it('leaves out files by the bounds of their columns, and keeps those of which nothing is known', async () => {
    const table = workshop.table({ schemas: [fields] })
    const bounds = (from: number, to: number, nulls: number) => ({
      lowerBounds: new Map([[1, valueToBytes({ type: 'int' }, from)]]),
      upperBounds: new Map([[1, valueToBytes({ type: 'int' }, to)]]),
      valueCounts: new Map([[1, 10]]),
      nullValueCounts: new Map([[1, nulls]]),
    })
    await table.data('select 1 as id', '{id: 1}', { name: 'low', file: bounds(0, 9, 0) })
    await table.data('select 1 as id', '{id: 1}', { name: 'high', file: bounds(10, 19, 1) })
    await table.data('select 1 as id', '{id: 1}', { name: 'unknown' })
    const built = await table.build()
    expect(await namesOf(built, { op: '=', column: 'id', value: 5 })).toEqual(['low', 'unknown'])
    expect(await namesOf(built, { op: '>', column: 'id', value: 9 })).toEqual(['high', 'unknown'])
    expect(await namesOf(built, { op: '>=', column: 'id', value: 9 })).toEqual(['low', 'high', 'unknown'])
    expect(await namesOf(built, { op: 'is null', column: 'id' })).toEqual(['high', 'unknown'])
    expect(await namesOf(built, { op: 'not', filter: { op: '>=', column: 'id', value: 10 } })).toEqual(['low', 'high', 'unknown']) // prettier-ignore
  })

  it('leaves out files and whole manifests by their partitions, across specs', async () => {
    const specs: PartitionSpec[] = [
      { specId: 0, fields: [{ fieldId: 1000, sourceId: 1, name: 'b', transform: { name: 'bucket', buckets: 4 } }] },
      { specId: 1, fields: [{ fieldId: 1001, sourceId: 2, name: 's', transform: { name: 'truncate', width: 1 } }] },
    ]
    const table = workshop.table({ schemas: [fields], specs })
    for (const bucket of [0, 1, 2, 3]) {
      await table.data('select 1 as id', '{id: 1}', { name: `bucket-${bucket}`, specId: 0, partition: [bucket] })
    }
    for (const s of ['a', 'b', null]) {
      await table.data('select 1 as id', '{id: 1}', { name: `s-${s}`, specId: 1, partition: [s] })
    }
    const built = await table.build()
    const bucket = applyTransform({ name: 'bucket', buckets: 4 }, { type: 'int' }, 34) as number
    const both: Filter = { op: 'and', filters: [{ op: '=', column: 'id', value: 34 }, { op: 'starts with', column: 's', value: 'bc' }] } // prettier-ignore
    expect(await namesOf(built, both)).toEqual([`bucket-${bucket}`, 's-b'])
    const reads: string[] = []
    const storage = Object.assign(Object.create(built.storage) as typeof built.storage, {
      read: (location: string) => {
        reads.push(location)
        return built.storage.read(location)
      },
    })
    expect(await namesOf({ ...built, storage }, { op: '>', column: 's', value: 'c' })).toEqual([0, 1, 2, 3].map((n) => `bucket-${n}`)) // prettier-ignore
    expect(reads.filter((location) => location.includes('manifest-1-'))).toEqual([])
  })

  it('is held against bounds and partitions in the type of its column', async () => {
    const uuid = 'f79c3e09-677c-4bbd-a479-3f349cb785e7'
    const columns = [optional(1, 'f', { type: 'float' }), optional(2, 'u', { type: 'uuid' })]
    const specs: PartitionSpec[] = [
      { specId: 0, fields: [{ fieldId: 1000, sourceId: 2, name: 'u', transform: { name: 'identity' } }] },
    ]
    const table = workshop.table({ schemas: [columns], specs })
    const bound = new Map([[1, valueToBytes({ type: 'float' }, 0.1)]])
    const file = { lowerBounds: bound, upperBounds: bound, valueCounts: new Map([[1, 1]]) }
    await table.data('select 0.1::float as f', '{f: 1}', { file, partition: [uuid] })
    expect((await table.rows({ filter: { op: '=', column: 'f', value: 0.1 } })).length).toBe(1)
    expect((await table.rows({ filter: { op: '=', column: 'u', value: uuid.toUpperCase() } })).length).toBe(1)
  })

  it('takes no bound for true that was cut inside a character', async () => {
    const table = workshop.table({ schemas: [fields] })
    const cut = new Map([[2, Buffer.from('ä').subarray(0, 1)]])
    await table.data("select 'ä' as s", '{s: 2}', { file: { lowerBounds: cut } })
    expect((await table.rows({ filter: { op: '=', column: 's', value: 'ä' } })).length).toBe(1)
  })

  it('by a column that cannot be read exactly is refused', async () => {
    const table = workshop.table({
      schemas: [[...fields, optional(4, 'at', { type: 'timestamptz_ns' })]],
      formatVersion: 3,
    })
    const filter: Filter = { op: '=', column: 'at', value: 1n }
    await expect(table.rows({ columns: ['id'], filter })).rejects.toMatchObject({ code: 'scan_unsupported' })
  })

  it('of a column that is not there, or with a value of another type, is refused', () => {
    const schema = { schemaId: 0, identifierFieldIds: [], fields: [...fields, optional(6, 'f', { type: 'float' }), optional(7, 'n', { type: 'decimal', precision: 3, scale: 1 }), optional(8, 'g', { type: 'geometry' }), optional(4, 'l', { type: 'list', elementId: 5, element: { type: 'int' }, elementRequired: false })] } // prettier-ignore
    const wrong: [Filter, RegExp][] = [
      [{ op: '=', column: 'nope', value: 1 }, /there is no such column/],
      [{ op: '=', column: 'id', value: 'x' }, /x is not a value of its type, int/],
      [{ op: '=', column: 'd', value: Number.NaN }, /use "is nan"/],
      [{ op: '=', column: 'l', value: 1 }, /it is a list/],
      [{ op: '=', column: 'l.element', value: 1 }, /inside a list or map/],
      [{ op: '=', column: 'id', value: 1.5 }, /1.5 is not a value of its type, int/],
      [{ op: '<', column: 'f', value: 1e300 }, /1e\+300 is not in the range of its type, float/],
      [{ op: '<', column: 'n', value: 1000n }, /1000 is not in the range of its type, decimal\(3, 1\)/],
      [{ op: '=', column: 'g', value: Buffer.from('') }, /values of its type, geometry.*, are not compared/],
      [{ op: 'starts with', column: 'id', value: '1' }, /only a string has a beginning/],
    ]
    for (const [filter, message] of wrong) expect(() => bindFilter(filter, schema)).toThrow(message)
  })
})

describe('the projection of a condition to a partition', () => {
  const longs = fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n })
  const near = fc.bigInt({ min: -20n, max: 20n })
  const columns: [Type, Transform[], fc.Arbitrary<Value>][] = [
    [{ type: 'long' }, [{ name: 'identity' }, { name: 'bucket', buckets: 3 }, { name: 'truncate', width: 7 }], fc.oneof(longs, near)],
    [{ type: 'int' }, [{ name: 'truncate', width: 10 }, { name: 'bucket', buckets: 2 }], fc.oneof(fc.integer(), fc.integer({ min: -20, max: 20 }))],
    [{ type: 'date' }, [{ name: 'year' }, { name: 'month' }, { name: 'day' }], fc.integer({ min: -1000, max: 1000 })],
    [{ type: 'timestamp' }, [{ name: 'year' }, { name: 'month' }, { name: 'day' }, { name: 'hour' }], near.map((h) => h * 1_800_000_000n)],
    [{ type: 'string' }, [{ name: 'identity' }, { name: 'truncate', width: 2 }], fc.string({ unit: fc.constantFrom('a', 'b', '🐢', '\uffff'), maxLength: 4 })],
    [{ type: 'decimal', precision: 9, scale: 2 }, [{ name: 'truncate', width: 50 }], fc.bigInt({ min: -200n, max: 200n })],
  ] // prettier-ignore
  const ops = ['=', '!=', '<', '<=', '>', '>=', 'in', 'not in', 'starts with', 'not starts with', 'is null', 'is not null'] as const // prettier-ignore

  it.each(columns)('never leaves out a row of %o that fulfils it', (type, transforms, values) => {
    fc.assert(
      fc.property(values, fc.option(values), fc.constantFrom(...ops), fc.constantFrom(...transforms), (literal, value, op, transform) => {
        if (op.endsWith('starts with') && type.type !== 'string') return
        const term: Term = { op, fieldId: 1, type: type as Term['type'], values: op.startsWith('is') ? [] : [literal] }
        if (!fulfils(term, value)) return
        const projected = projectTerm(term, transform)
        const partition = applyTransform(transform, type, value)
        if (projected !== undefined) expect(mayMatch(projected, exact(partition))).toBe(true)
      }),
      { numRuns: 2000 },
    ) // prettier-ignore
  })

  it('leaves out what it can', () => {
    const term: Term = { op: '<', fieldId: 1, type: { type: 'date' }, values: [100] }
    const projected = projectTerm(term, { name: 'day' })
    expect(projected && [99, 100, 101].map((day) => mayMatch(projected, exact(day)))).toEqual([true, true, false])
  })
})

function exact(value: Value | null) {
  const isNull = value === null
  return { lower: value ?? undefined, upper: value ?? undefined, mayBeNull: isNull, mayBeNan: false, mayBeValue: !isNull, isExact: !isNull } // prettier-ignore
}

/** What the condition means, said once more. */
function fulfils({ op, type, values: [literal] }: Term, value: Value | null): boolean {
  if (op === 'is null' || op === 'is not null') return (value === null) === (op === 'is null')
  if (value === null || literal === undefined) return op === '!=' || op.startsWith('not')
  const key = (v: Value): Value => (type.type === 'string' ? Buffer.from(v as string).toString('hex') : v)
  const [a, b] = [key(value), key(literal)]
  const truth = { '=': a === b, in: a === b, '!=': a !== b, 'not in': a !== b, '<': a < b, '<=': a <= b, '>': a > b, '>=': a >= b } // prettier-ignore
  const starts = String(value).startsWith(String(literal))
  if (op === 'starts with' || op === 'not starts with') return starts === (op === 'starts with')
  return truth[op as keyof typeof truth]
}
