import { IcebergError } from '../../errors.ts'
import { i32, i64, structField, structList, ThriftStruct } from '../thrift-compact.ts'
import { lineageColumns, lineageElement } from './lineage-chunk.ts'
import { fileMetaData, keyValue, schemaElement } from './parquet-fields.ts'
import type { WholeFooter } from './whole-footer.ts'

/** The footer of a joined file, but for what follows it: what the inputs agree on, and the row groups given. */
export function joinedFooter(
  inputs: readonly { readonly footer: WholeFooter; readonly lineage: unknown }[],
  groups: readonly ThriftStruct[],
): ThriftStruct {
  const footers = inputs.map(({ footer }) => footer)
  const first = footers[0]
  if (first === undefined) throw new IcebergError('parquet_invalid', 'No file was given to be joined.')
  const isMade = inputs.some(({ lineage }) => lineage !== undefined)
  // All have the same schema, but for lineage columns that some hold and others are given.
  const widest = footers.find((footer) => footer.leaves.length === widestLeaves(footers)) ?? first
  const addsToAll = inputs.every(({ lineage }) => lineage !== undefined)
  const version = Math.max(...footers.map(({ metadata }) => metadata.integer(fileMetaData.version) ?? 1))
  const keyValues = commonKeyValues(footers, isMade)
  const changed = [
    i32(fileMetaData.version, version),
    structList(fileMetaData.schema, addsToAll ? withLineage(first.schema) : widest.schema),
    i64(
      fileMetaData.rowCount,
      footers.reduce((sum, { rowCount }) => sum + rowCount, 0),
    ),
    structList(fileMetaData.rowGroups, groups),
  ]
  const { metadata } = widest
  const orders = metadata.structs(fileMetaData.columnOrders)
  if (orders !== undefined && addsToAll) {
    changed.push(structList(fileMetaData.columnOrders, withLineageOrders(orders)))
  }
  const kept = metadata.without(fileMetaData.keyValues).with(...changed)
  return keyValues.length === 0 ? kept : kept.with(structList(fileMetaData.keyValues, keyValues))
}

function widestLeaves(footers: readonly WholeFooter[]): number {
  return Math.max(...footers.map(({ leaves }) => leaves.length))
}

/** A schema with the lineage columns at its end. */
export function withLineage(schema: readonly ThriftStruct[]): ThriftStruct[] {
  const [root, ...rest] = schema
  if (root === undefined) return []
  const children = (root.integer(schemaElement.children) ?? 0) + lineageColumns.length
  return [root.with(i32(schemaElement.children, children)), ...rest, ...lineageColumns.map(lineageElement)]
}

/** The orders of columns, with those of the lineage columns: that of their type. */
export function withLineageOrders(orders: readonly ThriftStruct[]): ThriftStruct[] {
  const byType = new ThriftStruct([structField(1, new ThriftStruct([]))])
  return [...orders, ...lineageColumns.map(() => byType)]
}

/** What all files say alike. */
function commonKeyValues(footers: readonly WholeFooter[], isSchemaChanged: boolean): ThriftStruct[] {
  const [first = [], ...others] = footers.map(({ metadata }) => metadata.structs(fileMetaData.keyValues) ?? [])
  const said = others.map((each) => new Set(each.map((entry) => entry.encode().toString('latin1'))))
  return first.filter((entry) => {
    // Arrow's own schema; its readers refuse a file that has other columns.
    if (isSchemaChanged && entry.text(keyValue.key) === 'ARROW:schema') return false
    const text = entry.encode().toString('latin1')
    return said.every((each) => each.has(text))
  })
}
