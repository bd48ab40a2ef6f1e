import { expect, test } from 'vitest'
import type { ContentFile } from '../manifests/content-file.ts'
import type { ManifestFile } from '../manifests/manifest-file.ts'
import { createManifestWriter } from '../manifests/write-manifest.ts'
import type { Storage } from '../storage/storage.ts'
import { readManifests } from './read-manifests.ts'

function written(name: string, files: number): { content: Buffer; manifest: ManifestFile } {
  const writer = createManifestWriter({
    formatVersion: 2,
    content: 'data',
    schema: { schemaId: 0, identifierFieldIds: [], fields: [] },
    partitionSpec: { specId: 0, fields: [] },
    snapshotId: 1n,
  })
  const file: ContentFile = {
    content: 'data',
    filePath: '',
    fileFormat: 'parquet',
    specId: 0,
    partition: [],
    recordCount: 1,
    fileSizeInBytes: 1,
  }
  for (let n = 0; n < files; n += 1) writer.add({ status: 'added', file: { ...file, filePath: `${name}/${n}` } })
  return writer.finish(name)
}

/** Manifests of two files each, said to be this long, in a storage that counts its reads. */
function lake(count: number, manifestLength: number) {
  const all = Array.from({ length: count }, (_, n) => written(`m${n}`, 2))
  const contents = new Map(all.map(({ content, manifest }) => [manifest.manifestPath, content]))
  const reads = { begun: 0, underWay: 0, most: 0 }
  const storage = {
    async read(location: string) {
      reads.begun += 1
      reads.most = Math.max(reads.most, (reads.underWay += 1))
      await new Promise((done) => setImmediate(done))
      reads.underWay -= 1
      return contents.get(location) ?? Buffer.alloc(0)
    },
  } as Partial<Storage> as Storage
  return { storage, reads, manifests: all.map(({ manifest }) => ({ ...manifest, sequenceNumber: 1n, manifestLength })) }
}

const options = { partitionOf: () => [], statistics: false }

test('manifests are fetched several at a time, and come in their order', async () => {
  const { storage, reads, manifests } = lake(20, 100)
  const paths: string[] = []
  for await (const { entries } of readManifests(storage, manifests, options)) {
    paths.push(...entries.map(({ file }) => file.filePath))
  }
  expect(paths).toEqual(manifests.flatMap(({ manifestPath }) => [`${manifestPath}/0`, `${manifestPath}/1`]))
  expect(reads.most).toBe(8)
})

test('no more than 16 MiB of manifests wait, and one that is larger is read alone', async () => {
  const large = lake(12, 6 * 1024 * 1024)
  for await (const { manifest } of readManifests(large.storage, large.manifests, options)) {
    if (manifest.manifestPath === 'm5') break
  }
  // The one that is taken, and two more.
  expect(large.reads.begun).toBeLessThanOrEqual(8)
  const huge = lake(4, 1024 ** 3)
  let taken = 0
  for await (const { entries } of readManifests(huge.storage, huge.manifests, options)) {
    taken += entries.length / 2
    expect(huge.reads.begun).toBeLessThanOrEqual(taken + 1)
  }
  expect(taken).toBe(4)
})

test('the entries of a large manifest come in parts', async () => {
  const { content, manifest } = written('m', 20_000)
  const storage = { read: () => Promise.resolve(content) } as Partial<Storage> as Storage
  let entries = 0
  for await (const batch of readManifests(storage, [{ ...manifest, sequenceNumber: 1n }], options)) {
    expect(batch.entries.length).toBeLessThanOrEqual(1024)
    entries += batch.entries.length
  }
  expect(entries).toBe(20_000)
})
