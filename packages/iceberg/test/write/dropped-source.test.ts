import { expect, test } from 'vitest'
import {
  manifestsOf,
  readManifest,
  type NewTable,
  type PrimitiveType,
  type Table,
  type Value,
} from '../../src/index.ts'
import { bed, entriesOf, field } from './bed.ts'

const { catalog, newTable, rows } = bed()

const columns: readonly (readonly [PrimitiveType, Value])[] = [
  [{ type: 'boolean' }, true],
  [{ type: 'int' }, -5],
  [{ type: 'long' }, 2n ** 60n],
  [{ type: 'float' }, 1.5],
  [{ type: 'double' }, -2.5],
  [{ type: 'date' }, 19_000],
  [{ type: 'time' }, 5n],
  [{ type: 'timestamp' }, -1n],
  [{ type: 'timestamptz' }, 1_700_000_000_123_456n],
  [{ type: 'string' }, 'ü /'],
  [{ type: 'uuid' }, '8b26a680-2fb1-4fa6-9578-25857c875edd'],
  [{ type: 'binary' }, Buffer.from([0, 255])],
  [{ type: 'decimal', precision: 20, scale: 3 }, -(10n ** 15n)],
]
const names = columns.map(([{ type }]) => type)
const values = Object.fromEntries(columns.map(([{ type }, value]) => [type, value]))
const schema: NewTable['schema'] = {
  fields: [field(1, 'id', { type: 'int' }), ...columns.map(([type], n) => field(n + 2, type.type, type))],
}
const partitionSpec: NonNullable<NewTable['partitionSpec']> = {
  fields: names.map((name, n) => ({ fieldId: 1000 + n, sourceId: n + 2, name, transform: { name: 'identity' } })),
}

/** A table with files of a spec whose columns are gone from the table, and from every schema that it still knows. */
async function withoutSources(formatVersion: 2 | 3): Promise<Table> {
  const table = await newTable({ schema, partitionSpec, formatVersion })
  await table.append([0, 1, 2].map((id) => ({ ...values, id })))
  await table.append([{ ...values, id: 3 }, { id: 4 }])
  await table.updatePartitionSpec(names.map((name) => ({ change: 'remove', name })))
  await table.updateSchema(names.map((column) => ({ change: 'drop', column })))
  await table.append([{ id: 5 }])
  const { schemas, currentSchemaId } = table.metadata
  const schemaIds = schemas.map((s) => s.schemaId).filter((id) => id !== currentSchemaId)
  const result = await catalog().commit(table.loaded, {
    requirements: [],
    updates: [{ action: 'remove-schemas', schemaIds }],
    idempotencyKey: '0',
  })
  expect(result.outcome).toBe('applied')
  await table.refresh()
  expect(table.metadata.schemas).toHaveLength(1)
  return table
}

const text = (value: Value | null | undefined): string =>
  value instanceof Uint8Array ? Buffer.from(value).toString('hex') : String(value)
const given = columns.map(([, value]) => text(value)).join()
const nothing = columns.map(() => 'null').join()

async function partitionsOf({ loaded }: Table, content: 'data' | 'deletes'): Promise<Set<string>> {
  const head = loaded.metadata.snapshots.at(-1)
  const found = new Set<string>()
  for (const manifest of head === undefined ? [] : await manifestsOf(loaded, head)) {
    if (manifest.partitionSpecId !== 0 || manifest.content !== content) continue
    // As the manifest itself has them: the table no longer knows the types.
    for (const { file } of readManifest(await loaded.storage.read(manifest.manifestPath), manifest)) {
      found.add(file.partition.map(text).join())
    }
  }
  return found
}

test.each([2, 3] as const)(
  'in v%i deletes and manifests keep partitions of columns that are gone',
  async (formatVersion) => {
    const table = await withoutSources(formatVersion)
    const ids = async () => (await rows(table)).map((row) => Number(row['id'])).toSorted((a, b) => a - b)
    const files = (await entriesOf(table)).map((entry) => entry.file).filter((file) => file.specId === 0)
    const large = files.find((file) => file.recordCount === 3)?.filePath ?? ''
    const small = files.find((file) => file.recordCount === 1 && file.partition[0] === true)?.filePath ?? ''
    await table.deletePositions(new Map([[large, [1]]]))
    expect(await ids()).toEqual([0, 2, 3, 4, 5])
    await table.deletePositions(new Map([[large, [0]]]))
    await table.deleteFiles([small])
    expect(await partitionsOf(table, 'deletes')).toEqual(new Set([given]))
    expect(await partitionsOf(table, 'data')).toEqual(new Set([given, nothing]))
    await table.setProperties({ 'commit.manifest.min-count-to-merge': '2' })
    await table.append([{ id: 6 }])
    expect(await partitionsOf(table, 'data')).toEqual(new Set([given, nothing]))
    expect(await ids()).toEqual([2, 4, 5, 6])
  },
)
