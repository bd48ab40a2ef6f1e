import type { ManifestEntry } from '../../manifests/content-file.ts'
import { maxRowGroups } from './layout.ts'
import { withLineage, withLineageOrders } from './joined-footer.ts'
import { lineageColumns } from './lineage-chunk.ts'
import { fileMetaData, repetition, schemaElement } from './parquet-fields.ts'
import type { Unjoinable, WholeFooter } from './whole-footer.ts'

/** A data file that might be joined with others: its own footer, and what the table says of it. */
export interface JoinInput {
  readonly footer: WholeFooter
  readonly entry: Pick<ManifestEntry, 'file' | 'sequenceNumber'>
}

export interface JoinableOptions {
  /** Row groups smaller than this on average make readers slow: such a file is better encoded again. Default 16 MiB. */
  readonly minRowGroupBytes?: number
  /** Whether the joined file must hold the lineage of its rows: on tables of v3. */
  readonly lineage?: boolean
}

export interface Joinable<Input extends JoinInput> {
  /** Files that can be joined with each other, at least two in a set, in the order in which they were given. */
  readonly sets: readonly (readonly Input[])[]
  readonly refused: readonly (Unjoinable & { readonly input: Input })[]
}

const defaultMinRowGroupBytes = 16 * 1024 * 1024

/** Decides which files can be joined by copying their bytes, and says of every other one why it cannot. */
export function joinable<Input extends JoinInput>(
  inputs: readonly Input[],
  { minRowGroupBytes = defaultMinRowGroupBytes, lineage = false }: JoinableOptions = {},
): Joinable<Input> {
  const sets: Input[][] = []
  const refused: (Unjoinable & { input: Input })[] = []
  const open = new Map<string, { set: Input[]; rowGroups: number }>()
  for (const input of inputs) {
    const obstacle = obstacleOf(input, { minRowGroupBytes, lineage })
    if (obstacle !== undefined) {
      refused.push({ input, ...obstacle })
      continue
    }
    const key = likenessOf(input, lineage)
    const rowGroups = input.footer.groups.length
    const found = open.get(key)
    if (found !== undefined && found.rowGroups + rowGroups <= maxRowGroups) {
      found.set.push(input)
      found.rowGroups += rowGroups
    } else {
      const set = [input]
      sets.push(set)
      open.set(key, { set, rowGroups })
    }
  }
  for (const [input, ...others] of sets) {
    if (input === undefined || others.length > 0) continue
    const writer = input.footer.metadata.text(fileMetaData.createdBy) ?? 'an unknown writer'
    const why = `No other file has its schema, names and writer ("${writer}").`
    refused.push({ input, reason: 'alone', why })
  }
  return { sets: sets.filter(({ length }) => length > 1), refused }
}

/** What keeps this file from being joined with any other. */
export function obstacleOf(
  { footer, entry: { file } }: JoinInput,
  { minRowGroupBytes, lineage }: Required<JoinableOptions>,
): Unjoinable | undefined {
  if (footer.unjoinable !== undefined) return footer.unjoinable
  if (file.recordCount !== footer.rowCount) {
    const why = `It has ${footer.rowCount} rows, and the table says ${file.recordCount}.`
    return { reason: 'damaged', why }
  }
  const pages = footer.groups.flatMap(({ chunks }) => chunks.map((chunk) => chunk.pages.length))
  const bytes = pages.reduce((sum, length) => sum + length, 0)
  if (bytes < minRowGroupBytes * footer.groups.length) {
    const average = Math.round(bytes / footer.groups.length)
    const why = `Its row groups have ${average} bytes on average, fewer than ${minRowGroupBytes}.`
    return { reason: 'small_row_groups', why }
  }
  return lineage ? lineageObstacle({ footer, entry: { file, sequenceNumber: 0n } }) : undefined
}

function lineageObstacle({ footer, entry: { file } }: JoinInput): Unjoinable | undefined {
  const held = heldLineage(footer)
  if (held.length === 0) return file.firstRowId === undefined ? undefined : additionObstacle(footer)
  if (held.length < lineageColumns.length || file.firstRowId === undefined) {
    return { reason: 'lineage_unknown', why: 'It holds row lineage in part, or the table does not know of it.' }
  }
  const hasNulls = held.some(
    ({ index, isRequired }) =>
      !isRequired && footer.groups.some(({ chunks, rowCount }) => rowCount > 0 && chunks[index]?.nullCount !== 0),
  )
  if (!hasNulls) return undefined
  return { reason: 'lineage_nulls', why: 'Row lineage is null in some of its rows: they take it from where they are.' }
}

/**
 * What keeps lineage from being added. Columns are found by their ids as soon as one of them has an id, so that in a file
 * without ids, which is read by the names of its columns, all others would be taken for missing.
 */
function additionObstacle({ schema }: WholeFooter): Unjoinable | undefined {
  if (!schema.some((element) => element.integer(schemaElement.fieldId) !== undefined)) {
    return { reason: 'lineage_unknown', why: 'Its columns have no field ids, and those of row lineage need them.' }
  }
  const names = new Set<string>(lineageColumns.map(({ name }) => name))
  if (!schema.some((element) => names.has(element.text(schemaElement.name) ?? ''))) return undefined
  return { reason: 'lineage_unknown', why: 'It has a column with the name of one of row lineage.' }
}

/** The lineage columns that a file has in itself, by where they are among its columns. */
function heldLineage({ leaves }: WholeFooter): { index: number; isRequired: boolean }[] {
  return lineageColumns.flatMap(({ fieldId }) => {
    const index = leaves.findIndex(
      ({ element, path }) => path.length === 1 && element.integer(schemaElement.fieldId) === fieldId,
    )
    if (index === -1) return []
    const isRequired = leaves[index]?.element.integer(schemaElement.repetition) === repetition.required
    return [{ index, isRequired }]
  })
}

/** Whether the lineage of a file's rows must be written beside its own columns. */
export function lacksLineage({ footer, entry: { file } }: JoinInput): boolean {
  return file.firstRowId !== undefined && heldLineage(footer).length === 0
}

/**
 * What files must have in common to be joined. The whole schema, names included, because the metadata of every column
 * repeats its path. The writer, because readers correct the known mistakes of some. The order by which the least and
 * greatest values were found. Lineage that is known of some and not of others cannot be written for all.
 */
export function likenessOf(input: JoinInput, lineage: boolean): string {
  const { metadata, schema } = input.footer
  const isAdded = lineage && lacksLineage(input)
  const orders = metadata.structs(fileMetaData.columnOrders)
  const parts = [
    String(lineage && input.entry.file.firstRowId === undefined),
    metadata.text(fileMetaData.createdBy) ?? '',
    ...(isAdded ? withLineage(schema) : schema).map((element) => element.encode().toString('latin1')),
    '',
    ...(orders === undefined ? ['none'] : isAdded ? withLineageOrders(orders) : orders).map((order) =>
      typeof order === 'string' ? order : order.encode().toString('latin1'),
    ),
  ]
  return JSON.stringify(parts)
}
