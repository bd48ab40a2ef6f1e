import { describe, expect, test } from 'vitest'
import { hiddenPaths } from './hidden-paths.ts'
import { Prefixes } from './prefixes.ts'

const none = { equalSchemes: {}, equalAuthorities: {} }

describe('locations of an object store', () => {
  const prefixes = new Prefixes('s3a://bucket/t', { ...none, equalAuthorities: { 'old,older': 'bucket' } })
  test.each([
    ['s3a://bucket/t/x', '/t/x', 'same'],
    ['s3://bucket/t/x', '/t/x', 'same'],
    ['S3n://older/t/x', '/t/x', 'same'],
    ['/t/x', '/t/x', 'same'],
    ['s3://bucket2/t/x', '/t/x', 'other'],
    ['hdfs://bucket/t/x', '/t/x', 'other'],
    ['s3://bucket/t//x', '/t//x', 'same'],
    ['s3://bucket/t/a%20b', '/t/a%20b', 'same'],
    ['s3://bucket/t/../x', '/t/../x', 'same'],
  ])('%s', (location, path, prefix) => {
    expect(prefixes.compare(location)).toEqual({ path, prefix })
  })
})

describe('locations of a disk', () => {
  const prefixes = new Prefixes('file:///lake/t', none)
  test.each([
    ['file:/lake/t/x', '/lake/t/x', 'same'],
    ['file:///lake//t/./x', '/lake/t/x', 'same'],
    ['file://localhost/lake/t/x', '/lake/t/x', 'same'],
    ['/lake/t/x', '/lake/t/x', 'same'],
    ['s3://b/lake/t/x', '/lake/t/x', 'other'],
  ])('%s', (location, path, prefix) => {
    expect(prefixes.compare(location)).toEqual({ path, prefix })
  })
})

test('schemes are equal when they are said to be', () => {
  const prefixes = new Prefixes('hdfs://a/t', { equalSchemes: { 'viewfs,webhdfs': 'hdfs' }, equalAuthorities: {} })
  expect(prefixes.compare('viewfs://a/t/x').prefix).toBe('same')
  expect(prefixes.compare('hdfs:///t/x').prefix).toBe('same')
  expect(prefixes.compare('wasb://a/t/x').prefix).toBe('other')
})

test('a name that begins with _ or a dot hides a file, but that of a partition field does not', () => {
  const field = { fieldId: 1000, sourceId: 1, name: '_day', transform: { name: 'identity' } } as const
  const isHidden = hiddenPaths({ partitionSpecs: [{ specId: 0, fields: [field] }] })
  for (const path of ['_SUCCESS', 'data/.x', 'a/_tmp/b', '_dayx/b', '_day/b']) expect(isHidden(path), path).toBe(true)
  for (const path of ['x', 'data/x_y/z.parquet', 'data/_day=1/x']) expect(isHidden(path), path).toBe(false)
})
