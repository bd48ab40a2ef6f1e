import { expect } from 'vitest'
import { planFiles, type Field, type NewTable, type Table } from '../../src/index.ts'
import type { Engine } from './engines.ts'

/** A table that this package writes, step by step, for others to read. */
export interface WrittenTable {
  readonly table: NewTable
  readonly write: (table: Table) => Promise<void>
  readonly readBy: readonly Engine[]
}

const f = (id: number, name: string, type: Field['type'], required = false): Field => ({ id, name, required, type })
const rows = (from: number, count: number) =>
  Array.from({ length: count }, (_, n) => ({
    id: BigInt(from + n),
    p: n % 5 === 4 ? null : ['a', 'b c/ü', 'd'][n % 3],
    day: 19_000 + (n % 4) * 40,
    at: 1_700_000_000_123_456n + BigInt(n) * 3_600_000_000n * 7n,
    x: n % 4 === 0 ? -0 : n / 3,
  }))
const schema: NewTable['schema'] = {
  fields: [
    f(1, 'id', { type: 'long' }),
    f(2, 'p', { type: 'string' }),
    f(3, 'day', { type: 'date' }),
    f(4, 'at', { type: 'timestamptz' }),
    f(5, 'x', { type: 'double' }),
  ],
}
const all: readonly Engine[] = ['spark', 'pyiceberg']

type Transform = NonNullable<NewTable['partitionSpec']>['fields'][number]['transform']
const by = (sourceId: number, transform: Transform): NewTable['partitionSpec'] => ({
  fields: [{ fieldId: 1000, sourceId, name: 'part', transform }],
})

async function dataFiles(table: Table): Promise<string[]> {
  const paths: string[] = []
  for await (const batch of planFiles(table.loaded)) paths.push(...batch.map((file) => file.file.filePath))
  return paths.toSorted()
}

async function deleteEverywhere(table: Table, granularity: 'file' | 'partition' = 'file'): Promise<void> {
  const positions = new Map((await dataFiles(table)).map((path) => [path, [0]]))
  await table.deletePositions(positions, { granularity })
}

const twice = async (table: Table): Promise<void> => {
  await table.append(rows(0, 9), { maxRowsPerFile: 5 })
  await table.append(rows(20, 3))
}

const types: NewTable['schema'] = {
  fields: [
    f(1, 'b', { type: 'boolean' }),
    f(2, 'i', { type: 'int' }, true),
    f(3, 'f', { type: 'float' }),
    f(4, 'small', { type: 'decimal', precision: 9, scale: 2 }),
    f(5, 'mid', { type: 'decimal', precision: 18, scale: 4 }),
    f(6, 'big', { type: 'decimal', precision: 38, scale: 10 }),
    f(7, 'ts', { type: 'timestamp' }),
    f(8, 'bin', { type: 'binary' }),
    f(9, 'list', { type: 'list', elementId: 10, element: { type: 'int' }, elementRequired: false }),
    f(11, 'map', {
      type: 'map',
      keyId: 12,
      key: { type: 'string' },
      valueId: 13,
      value: { type: 'struct', fields: [f(14, 'n', { type: 'long' })] },
      valueRequired: false,
    }),
    f(15, 'a point.x y', { type: 'struct', fields: [f(16, 'ü', { type: 'double' }), f(17, 's', { type: 'string' })] }),
  ],
}
const typedRows = [
  {
    b: true,
    i: 1,
    f: 1.5,
    small: -1234567n,
    mid: 99_999_999_999_999n,
    big: -(10n ** 37n),
    ts: -1n,
    bin: Uint8Array.of(0, 255),
    list: [1, null, 3],
    map: [['k', { n: 5n }]],
    'a point.x y': { ü: Number.NaN, s: 'é'.repeat(300) },
  },
  { i: 2, f: Number.NEGATIVE_INFINITY, list: [], map: [], 'a point.x y': { ü: -0, s: null } },
]

/** Every form that this package writes. */
export const writtenTables: Readonly<Record<string, WrittenTable>> = {
  ...Object.fromEntries(
    ([1, 2, 3] as const).flatMap((formatVersion) => [
      [`plain_v${formatVersion}`, { table: { schema, formatVersion }, write: twice, readBy: all }],
      [
        `types_v${formatVersion}`,
        {
          table: { schema: types, formatVersion },
          write: async (table: Table) => void (await table.append(typedRows)),
          readBy: all,
        },
      ],
    ]),
  ),
  ...Object.fromEntries(
    Object.entries({
      identity: by(2, { name: 'identity' }),
      bucket: by(1, { name: 'bucket', buckets: 4 }),
      truncate: by(2, { name: 'truncate', width: 2 }),
      year: by(3, { name: 'year' }),
      month: by(3, { name: 'month' }),
      day: by(4, { name: 'day' }),
      hour: by(4, { name: 'hour' }),
      void: by(1, { name: 'void' }),
    }).map(([name, partitionSpec]): [string, WrittenTable] => [
      `by_${name}`,
      { table: { schema, ...(partitionSpec && { partitionSpec }) }, write: twice, readBy: all },
    ]),
  ),
  // Spark has neither of these types; Iceberg's own Java has.
  times_and_uuids: {
    table: { schema: { fields: [f(1, 't', { type: 'time' }), f(2, 'u', { type: 'uuid' })] } },
    write: async (table) =>
      void (await table.append([
        { t: 1n, u: '8b26a680-2fb1-4fa6-9578-25857c875edd' },
        { t: 86_399_999_999n, u: null },
      ])),
    readBy: ['java', 'pyiceberg'],
  },
  position_deletes_by_file: {
    table: {
      schema,
      partitionSpec: { fields: [{ fieldId: 1000, sourceId: 2, name: 'p', transform: { name: 'identity' } }] },
    },
    write: async (table) => {
      await twice(table)
      await deleteEverywhere(table)
    },
    readBy: all,
  },
  position_deletes_by_partition: {
    table: {
      schema,
      partitionSpec: { fields: [{ fieldId: 1000, sourceId: 2, name: 'p', transform: { name: 'identity' } }] },
    },
    write: async (table) => {
      await twice(table)
      await deleteEverywhere(table, 'partition')
    },
    readBy: all,
  },
  deletion_vectors: {
    table: { schema, formatVersion: 3 },
    write: async (table) => {
      await twice(table)
      await deleteEverywhere(table)
      const [first = ''] = await dataFiles(table)
      await table.deletePositions(new Map([[first, [0, 2]]]))
    },
    readBy: all,
  },
  upgraded_deletes: {
    table: { schema },
    write: async (table) => {
      await twice(table)
      await deleteEverywhere(table, 'partition')
      await table.upgradeFormatVersion(3)
      const [first = ''] = await dataFiles(table)
      await table.deletePositions(new Map([[first, [1]]]))
      await table.append(rows(50, 2))
    },
    readBy: all,
  },
  ...Object.fromEntries(
    ([2, 3] as const).map((formatVersion): [string, WrittenTable] => [
      `equality_deletes_v${formatVersion}`,
      {
        table: { schema, formatVersion },
        write: async (table) => {
          await twice(table)
          await table.deleteEqual(['id'], [{ id: 1n }, { id: 21n }], { append: rows(1, 1) })
          await table.deleteEqual(['p'], [{ p: null }])
        },
        // PyIceberg does not read equality deletes.
        readBy: ['spark'],
      },
    ]),
  ),
  overwrites: {
    table: {
      schema,
      formatVersion: 3,
      partitionSpec: { fields: [{ fieldId: 1000, sourceId: 2, name: 'p', transform: { name: 'identity' } }] },
    },
    write: async (table) => {
      await twice(table)
      await deleteEverywhere(table)
      await table.overwrite(rows(100, 1), { replace: 'partitions' })
      const [first = ''] = await dataFiles(table)
      await table.deleteFiles([first])
      await table.overwrite(rows(200, 3))
    },
    readBy: all,
  },
  evolution: {
    table: {
      schema,
      partitionSpec: { fields: [{ fieldId: 1000, sourceId: 2, name: 'p', transform: { name: 'identity' } }] },
    },
    write: async (table) => {
      await twice(table)
      await table.updateSchema([
        { change: 'rename', column: 'x', to: 'y' },
        { change: 'add', name: 'n', type: { type: 'int' } },
        { change: 'move', column: 'y', to: 'first' },
        { change: 'drop', column: 'day' },
      ])
      await table.updatePartitionSpec([{ change: 'add', column: 'id', transform: { name: 'bucket', buckets: 2 } }])
      await table.append(rows(60, 4).map(({ x, day: _, ...row }) => ({ ...row, y: x, n: 7 })))
    },
    readBy: all,
  },
  widened: {
    table: { schema: { fields: [f(1, 'n', { type: 'int' }), f(2, 'x', { type: 'float' })] } },
    write: async (table) => {
      await table.append([{ n: 1, x: 0.5 }])
      await table.updateSchema([
        { change: 'widen', column: 'n', type: { type: 'long' } },
        { change: 'widen', column: 'x', type: { type: 'double' } },
      ])
      await table.append([{ n: 2n ** 40n, x: 0.1 }])
    },
    readBy: all,
  },
  defaults: {
    table: { schema, formatVersion: 3 },
    write: async (table) => {
      await twice(table)
      await table.updateSchema([{ change: 'add', name: 'n', type: { type: 'int' }, default: 9 }])
      await table.append(rows(60, 1))
    },
    readBy: ['spark'],
  },
  refs: {
    table: { schema },
    write: async (table) => {
      const first = await table.append(rows(0, 3))
      await table.createTag('v1', { maxRefAgeMs: 86_400_000n })
      await table.createBranch('work', { minSnapshotsToKeep: 2, maxSnapshotAgeMs: 86_400_000n })
      await table.append(rows(10, 2), { branch: 'work' })
      await table.append(rows(20, 2))
      await table.rollbackTo(first?.snapshotId ?? 0n)
      await table.append(rows(30, 1))
    },
    readBy: all,
  },
  sorted: {
    table: { schema },
    write: async (table) => {
      await table.updateSortOrder([{ column: 'p', direction: 'desc' }, { column: 'id' }])
      await twice(table)
    },
    readBy: all,
  },
  many_files: {
    table: { schema, properties: { 'write.target-file-size-bytes': '5000' } },
    write: async (table) => {
      await table.append(rows(0, 3000))
      expect((await dataFiles(table)).length).toBeGreaterThan(2)
    },
    readBy: all,
  },
  sorted_by_transforms: {
    table: { schema },
    write: async (table) => {
      await table.updateSortOrder([
        { column: 'id', transform: { name: 'bucket', buckets: 4 }, direction: 'desc', nullOrder: 'nulls-first' },
        { column: 'p', transform: { name: 'truncate', width: 1 }, nullOrder: 'nulls-last' },
        { column: 'at', transform: { name: 'day' }, direction: 'desc' },
        { column: 'day', transform: { name: 'year' } },
        { column: 'x', transform: { name: 'void' } },
        { column: 'id' },
      ])
      await table.append([{ id: null, p: null }, ...rows(0, 40)])
      await twice(table)
    },
    readBy: all,
  },
  ...Object.fromEntries(
    ([2, 3] as const).map((formatVersion): [string, WrittenTable] => [
      `spec_without_column_v${formatVersion}`,
      {
        table: {
          schema,
          formatVersion,
          partitionSpec: {
            fields: [
              { fieldId: 1000, sourceId: 2, name: 'p', transform: { name: 'identity' } },
              { fieldId: 1001, sourceId: 4, name: 'at_day', transform: { name: 'day' } },
            ],
          },
        },
        write: async (table) => {
          await table.append(rows(0, 6))
          await table.append(rows(10, 6))
          await table.updatePartitionSpec([
            { change: 'remove', name: 'p' },
            { change: 'remove', name: 'at_day' },
          ])
          await table.updateSchema([
            { change: 'drop', column: 'p' },
            { change: 'drop', column: 'at' },
          ])
          await table.append(rows(20, 3).map(({ id, day, x }) => ({ id, day, x })))
          const [first = '', second = ''] = await dataFiles(table)
          await table.deletePositions(new Map([[first, [0]]]))
          await table.deleteFiles([second])
          await table.setProperties({ 'commit.manifest.min-count-to-merge': '2' })
          await table.append([{ id: 30n }])
        },
        readBy: all,
      },
    ]),
  ),
  ...Object.fromEntries(
    ([1, 2, 3] as const).map((formatVersion): [string, WrittenTable] => [
      `merged_manifests_v${formatVersion}`,
      {
        table: { schema, formatVersion, properties: { 'commit.manifest.min-count-to-merge': '2' } },
        write: async (table) => {
          for (const from of [0, 10, 20]) await table.append(rows(from, 3))
          if (formatVersion > 1) for (let n = 0; n < 2; n += 1) await deleteEverywhere(table)
          await table.append(rows(50, 3))
          const [first = ''] = await dataFiles(table)
          await table.deleteFiles([first])
        },
        readBy: all,
      },
    ]),
  ),
}
