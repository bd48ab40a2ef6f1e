// @ts-check
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import {
  applyUpdates,
  createManifestWriter,
  createTableMetadata,
  partitionSpecOf,
  schemaOf,
  serializeTableMetadata,
  valueToBytes,
  writeManifestList,
} from '@fencepost/iceberg'

const names = ['id', 'day', 'a', 'b', 'c', 'd', 'e', 'f', 'g', 'h']

/**
 * A table, partitioned by day, of data files that are not there: each has counts, sizes and bounds of ten columns.
 * Returns the location of its metadata.
 * @param {string} folder
 * @param {number} files
 * @param {number} manifests
 */
export async function makeTable(folder, files, manifests) {
  await mkdir(join(folder, 'metadata'))
  const fields = names.map((name, index) => {
    const type = name === 'day' ? 'date' : index % 2 === 0 ? 'long' : 'string'
    return { id: index + 1, name, required: false, type: /** @type {const} */ ({ type }) }
  })
  const base = createTableMetadata({
    location: folder,
    schema: { fields },
    partitionSpec: { fields: [{ fieldId: 1000, sourceId: 2, name: 'day', transform: { name: 'identity' } }] },
    formatVersion: 2,
    nowMs: Date.now(),
  })
  const snapshotId = 4_611_686_018_427_387_905n
  const schema = schemaOf(base)
  const perManifest = files / manifests
  const list = []
  for (let at = 0; at < manifests; at += 1) {
    const writer = createManifestWriter({
      formatVersion: 2,
      content: 'data',
      schema,
      partitionSpec: partitionSpecOf(base),
      snapshotId,
    })
    for (let index = 0; index < perManifest; index += 1) {
      writer.add({ status: 'added', file: dataFile(folder, fields, at, index) })
    }
    const path = join(folder, 'metadata', `m${at}.avro`)
    const { content, manifest } = writer.finish(path)
    await writeFile(path, content)
    list.push(manifest)
  }
  const written = writeManifestList(list, {
    formatVersion: 2,
    snapshotId,
    parentSnapshotId: undefined,
    sequenceNumber: 1n,
  })
  const manifestList = join(folder, 'metadata', 'snap.avro')
  await writeFile(manifestList, written.content)
  const times = { sequenceNumber: 1n, timestampMs: base.lastUpdatedMs }
  const snapshot = { snapshotId, ...times, manifestList, schemaId: 0, summary: { operation: 'append' } }
  const ref = { type: /** @type {const} */ ('branch'), snapshotId }
  const updates = [
    { action: /** @type {const} */ ('add-snapshot'), snapshot },
    { action: /** @type {const} */ ('set-snapshot-ref'), refName: 'main', ref },
  ]
  const metadata = applyUpdates(base, updates, { nowMs: Date.now() })
  const location = join(folder, 'metadata', 'v1.metadata.json')
  await writeFile(location, serializeTableMetadata(metadata, location))
  return location
}

/**
 * Days and ids grow from manifest to manifest, so that a filter has something to leave out.
 * @param {string} folder
 * @param {readonly { id: number, type: { type: 'long' | 'string' | 'date' } }[]} fields
 * @param {number} manifest
 * @param {number} index
 */
function dataFile(folder, fields, manifest, index) {
  const day = 19_000 + manifest
  const id = BigInt(manifest) * 1_000_000n + BigInt(index) * 1000n
  const counts = new Map(fields.map((field) => [field.id, 1000]))
  /** @param {number} more */
  const bounds = (more) =>
    new Map(
      fields.map(({ id: fieldId, type }) => {
        if (type.type === 'date') return [fieldId, valueToBytes(type, day)]
        const value = type.type === 'long' ? id + BigInt(more) : `value-${manifest}-${index}-${more}`
        return [fieldId, valueToBytes(type, value)]
      }),
    )
  return {
    content: /** @type {const} */ ('data'),
    filePath: `${folder}/data/day=${day}/${manifest}-${index}-0123456789abcdef.parquet`,
    fileFormat: 'parquet',
    specId: 0,
    partition: [day],
    recordCount: 1000,
    fileSizeInBytes: 100_000 + index,
    columnSizes: counts,
    valueCounts: counts,
    nullValueCounts: new Map(fields.map((field) => [field.id, 0])),
    lowerBounds: bounds(0),
    upperBounds: bounds(999),
    splitOffsets: [4],
  }
}
