import { expect, test } from 'vitest'
import type { Schema } from '../schema/schema.ts'
import type { ContentFile } from './content-file.ts'
import { readManifestListPaths, readManifestPaths } from './read-paths.ts'
import { createManifestWriter } from './write-manifest.ts'
import { writeManifestList } from './write-manifest-list.ts'

const schema: Schema = { schemaId: 0, identifierFieldIds: [], fields: [] }

const file = (name: string, content: ContentFile['content'] = 'data'): ContentFile => ({
  content,
  filePath: `s3://lake/${name}`,
  fileFormat: 'parquet',
  specId: 3,
  partition: [],
  recordCount: 1,
  fileSizeInBytes: name.length,
  columnSizes: new Map([[1, 5]]),
  lowerBounds: new Map([[1, Buffer.from('x')]]),
})

function manifestOf(entries: readonly ContentFile[], content: 'data' | 'deletes', formatVersion: 1 | 2 | 3) {
  const options = { schema, partitionSpec: { specId: 3, fields: [] }, formatVersion, content, snapshotId: 7n }
  const writer = createManifestWriter(options)
  const known = { snapshotId: 1n, sequenceNumber: 1n, fileSequenceNumber: 1n }
  for (const [n, one] of entries.entries()) {
    if (n % 3 === 0) writer.add({ status: 'added', file: one })
    else writer.add({ status: n % 3 === 1 ? 'existing' : 'deleted', ...known, file: one })
  }
  return writer.finish('s3://lake/m.avro')
}

test.each([1, 2, 3] as const)(
  'the live files of a manifest of version %i are read, and only those',
  (formatVersion) => {
    const { content } = manifestOf([file('a'), file('bb'), file('gone'), file('ü🐢')], 'data', formatVersion)
    expect([...readManifestPaths(content, 'm')].flat()).toEqual([
      { path: 's3://lake/a', content: 'data', bytes: 1 },
      { path: 's3://lake/bb', content: 'data', bytes: 2 },
      { path: 's3://lake/ü🐢', content: 'data', bytes: 'ü🐢'.length },
    ])
  },
)

test('a manifest of deletes says what its files are', () => {
  const files = [file('p', 'position-deletes'), { ...file('e', 'equality-deletes'), equalityIds: [1] }]
  const { content } = manifestOf(files, 'deletes', 2)
  expect([...readManifestPaths(content, 'm')].flat().map((one) => one.content)).toEqual([
    'position-deletes',
    'equality-deletes',
  ])
})

test('a manifest list names its manifests with their length and spec; an encrypted one is refused', () => {
  const { manifest } = manifestOf([file('a')], 'data', 2)
  const options = { formatVersion: 2, snapshotId: 7n, parentSnapshotId: undefined, sequenceNumber: 1n } as const
  const { content } = writeManifestList([manifest], options)
  expect(readManifestListPaths(content, 'list')).toEqual([
    { path: 's3://lake/m.avro', bytes: manifest.manifestLength, specId: 3 },
  ])
  const encrypted = writeManifestList([{ ...manifest, keyMetadata: Buffer.from('key') }], options)
  expect(() => readManifestListPaths(encrypted.content, 'list')).toThrow('encrypted')
})

test('a damaged manifest is an error, never a shorter list', () => {
  const { content } = manifestOf([file('a'), file('b')], 'data', 2)
  expect(() => [...readManifestPaths(content.subarray(0, content.length - 5), 'm')]).toThrow('damaged')
})
