import {
  partitionSpecOf,
  schemaOf,
  type Field,
  type PartitionChange,
  type SchemaChange,
  type Table,
  type Transform,
} from '../../src/index.ts'
import { ids } from './model.ts'

// Changes of schema and partition spec, by a number; those that are not possible just now do nothing.

export async function evolveSchema(table: Table, pick: number, name: string): Promise<void> {
  const { metadata } = table
  const { fields } = schemaOf(metadata)
  const named = (id: number): Field | undefined => fields.find((f) => f.id === id)
  const sources = partitionSpecOf(metadata).fields.filter((f) => f.transform.name !== 'void')
  const gone = fields.findLast((f) => f.id > ids.p && !sources.some((source) => source.sourceId === f.id))
  const first = fields.find((f) => f.id === ids.p)?.name ?? ''
  const widen = (id: number, from: string, to: 'long' | 'double' | 'timestamp'): SchemaChange[] => {
    const found = named(id)
    return found?.type.type === from ? [{ change: 'widen', column: found.name, type: { type: to } }] : []
  }
  const changes: SchemaChange[][] = [
    [{ change: 'add', name, type: { type: 'double' } }],
    [{ change: 'rename', column: first, to: name }],
    gone === undefined ? [] : [{ change: 'drop', column: gone.name }],
    // Another column of the same name is another column.
    gone === undefined
      ? []
      : [
          { change: 'drop', column: gone.name },
          { change: 'add', name: gone.name, type: { type: 'string' } },
        ],
    [{ change: 'move', column: first, to: 'first' }],
    [{ change: 'add', name, type: { type: 'string' }, ...(metadata.formatVersion === 3 && { default: "it's" }) }],
    widen(ids.id, 'int', 'long'),
    widen(ids.d, 'float', 'double'),
    metadata.formatVersion === 3 ? widen(ids.day, 'date', 'timestamp') : [],
  ]
  const chosen = changes[pick % changes.length] ?? []
  if (chosen.length > 0) await table.updateSchema(chosen)
}

const transforms: readonly (readonly [sourceId: number, transform: Transform])[] = [
  [ids.p, { name: 'identity' }],
  [ids.id, { name: 'bucket', buckets: 3 }],
  [ids.p, { name: 'truncate', width: 1 }],
  [ids.s, { name: 'truncate', width: 2 }],
  [ids.s, { name: 'identity' }],
  [ids.d, { name: 'identity' }],
  [ids.day, { name: 'month' }],
  [ids.id, { name: 'truncate', width: 10 }],
]

export function specFields(pick: number): { sourceId: number; transform: Transform }[] {
  const [sourceId, transform] = transforms[pick % transforms.length] ?? []
  return sourceId === undefined || transform === undefined ? [] : [{ sourceId, transform }]
}

export async function evolveSpec(table: Table, pick: number, name: string): Promise<void> {
  const { fields } = schemaOf(table.metadata)
  const live = partitionSpecOf(table.metadata).fields.filter((f) => f.transform.name !== 'void')
  const chosen = specFields(pick)[0]
  const same = live.find((f) => f.sourceId === chosen?.sourceId && f.transform.name === chosen.transform.name)
  // What is there already is taken away.
  const removed = same ?? (pick >= transforms.length ? live[0] : undefined)
  const column = fields.find((f) => f.id === chosen?.sourceId)?.name
  const changes: PartitionChange[] =
    removed !== undefined
      ? [{ change: 'remove', name: removed.name }]
      : chosen !== undefined && column !== undefined
        ? [{ change: 'add', column, transform: chosen.transform, name }]
        : []
  if (changes.length > 0) await table.updatePartitionSpec(changes)
}
