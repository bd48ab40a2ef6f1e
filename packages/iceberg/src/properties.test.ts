import { expect, test } from 'vitest'
import { columnMetrics, propertyOf, tableProperties } from './properties.ts'

test('a table without properties has the defaults', () => {
  for (const property of Object.values(tableProperties)) {
    expect(propertyOf<unknown>({ properties: {} }, property), property.key).toEqual(property.default)
  }
})

test('no two properties have the same key', () => {
  const keys = Object.values(tableProperties).map(({ key }) => key)
  expect(new Set(keys).size).toBe(keys.length)
})

test('a flag is true only when it says so, in any case', () => {
  const of = (text: string) => propertyOf({ properties: { 'gc.enabled': text } }, tableProperties.gcEnabled)
  expect(['true', 'TRUE', ' True '].map(of)).toEqual([true, true, true])
  expect(['false', 'no', '1', ''].map(of)).toEqual([false, false, false, false])
})

test('a count that is not a number is taken as absent', () => {
  const of = (text: string) =>
    propertyOf({ properties: { 'commit.retry.num-retries': text } }, tableProperties.commitRetries)
  expect(['0', '7', '-1', 'many', '', 'NaN'].map(of)).toEqual([0, 7, 4, 4, 4, 4])
})

test('a size that is not a number of bytes is refused, naming the table', () => {
  const of = (text: string) =>
    propertyOf(
      { properties: { 'write.target-file-size-bytes': text }, location: 's3://lake/animals' },
      tableProperties.targetFileBytes,
    )
  expect(of('1048576')).toBe(1_048_576)
  for (const text of ['0', '-1', '512MB', '', 'Infinity']) expect(() => of(text)).toThrow('s3://lake/animals')
})

test('metrics modes are read as Java spells them', () => {
  const of = (text: string) => columnMetrics(['a', 'b']).parse(text, undefined)
  expect(columnMetrics(['a', 'b']).key).toBe('write.metadata.metrics.column.a.b')
  expect(['none', ' Counts', 'FULL'].map(of)).toEqual([{ mode: 'none' }, { mode: 'counts' }, { mode: 'full' }])
  expect(of('TRUNCATE(3)')).toEqual({ mode: 'truncate', length: 3 })
  for (const text of ['truncate(0)', 'truncate', 'some']) expect(() => of(text)).toThrow('is not a metrics mode')
})
