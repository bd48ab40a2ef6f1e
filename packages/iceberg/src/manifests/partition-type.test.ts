import { expect, test } from 'vitest'
import { createTableMetadata } from '../metadata/create-table-metadata.ts'
import type { Schema } from '../schema/schema.ts'
import type { TableMetadata } from '../metadata/table-metadata.ts'
import { partitionType, partitionTypesOf } from './partition-type.ts'

/** A table of so many schemas, of which only the first has the column that it is partitioned by. */
function table(schemaCount: number): { metadata: TableMetadata; reads: () => number } {
  let reads = 0
  const schemas = Array.from({ length: schemaCount }, (_, schemaId): Schema => ({
    schemaId,
    identifierFieldIds: [],
    get fields() {
      reads += 1
      return [{ id: schemaId === 0 ? 1 : 2, name: 'c', required: false, type: { type: 'int' } }] as const
    },
  }))
  const empty = createTableMetadata({ location: 'file:///t', schema: { fields: [] }, formatVersion: 2, nowMs: 1 })
  const day = { sourceId: 1, fieldId: 1000, name: 'c', transform: { name: 'identity' } } as const
  const spec = { specId: 0, fields: [day] }
  return {
    metadata: { ...empty, schemas, currentSchemaId: schemaCount - 1, partitionSpecs: [spec] },
    reads: () => reads,
  }
}

test('the partition types of a spec are found once for a state of a table', () => {
  const { metadata, reads } = table(300)
  const types = partitionTypesOf(metadata, 0)
  expect(types).toEqual([{ fieldId: 1000, name: 'c', type: { type: 'int' } }])
  const first = reads()
  for (let manifest = 0; manifest < 100; manifest += 1) expect(partitionTypesOf(metadata, 0)).toBe(types)
  expect(reads()).toBe(first)
})

test('schemas are looked through only until all columns are found', () => {
  const { metadata, reads } = table(300)
  const [spec] = metadata.partitionSpecs
  expect(partitionType(spec ?? { specId: 0, fields: [] }, metadata.schemas)[0]?.type).toEqual({ type: 'int' })
  expect(reads()).toBe(1)
})
