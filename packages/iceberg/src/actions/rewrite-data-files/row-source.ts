import type { LoadedTable } from '../../catalogs/catalog.ts'
import { schemaOf, sortOrderOf } from '../../metadata/table-metadata.ts'
import type { DuckDb } from '../../parquet/duckdb.ts'
import { metricsModes } from '../../parquet/metrics-modes.ts'
import { metadataColumns } from '../../scan/metadata-columns.ts'
import type { PlanContext } from '../../scan/plan.ts'
import type { SelectedGroup, Selection, TableReader } from '../../scan/table-reader.ts'
import type { Field } from '../../schema/type.ts'
import type { Staging } from '../../storage/staging.ts'
import type { FileKind } from '../../write/write-files.ts'
import type { RewriteSettings } from './options.ts'
import type { RowTallies } from './proof.ts'
import { isWhole, type Slice } from './slices.ts'

/** What groups are read and written with. */
export interface EncodeContext {
  readonly table: LoadedTable
  readonly context: PlanContext
  readonly settings: RewriteSettings
  readonly duckDb: DuckDb
  readonly staging: Staging
  readonly tallies: RowTallies
  readonly signal?: AbortSignal | undefined
  /** Called when a file is written: with its size, and that of the rows it was made of. */
  readonly onWritten?: (bytes: number, ofBytes: number) => void
}

const lineage = ['_row_id', '_last_updated_sequence_number'] as const

/** The live rows of a group, as they are to be written: the table's columns, and in v3 the lineage of each row. */
export class RowSource {
  readonly kind: FileKind
  readonly withHashes: boolean
  readonly #reader: TableReader
  readonly #selection: Selection

  constructor({ table, settings }: EncodeContext, reader: TableReader) {
    const { metadata } = table
    const schema = schemaOf(metadata)
    const ofRows = metadata.formatVersion < 3 ? [] : lineage
    this.#reader = reader
    this.#selection = {
      fields: schema.fields,
      metadataColumns: ofRows,
      nameOf: ({ name }: Pick<Field, 'name'>) => name,
    }
    this.withHashes = settings.options.proof === 'checksum'
    this.kind = {
      content: 'data',
      fields: [...schema.fields, ...ofRows.map((name) => metadataColumns[name])],
      modes: metricsModes(schema, metadata.properties, sortOrderOf(metadata)),
      specId: settings.outputSpecId,
      sortOrderId: 0,
    }
  }

  /** The rows of slices, in their order as far as they can be read as one. */
  async select(slices: readonly Slice[]): Promise<{ sql: string; release: () => Promise<void> }> {
    const selected: { group: SelectedGroup; sql: string }[] = []
    const release = async (): Promise<void> => {
      for (const { group } of selected) await group.release()
    }
    try {
      const whole = slices.filter(isWhole).map(({ scanned }) => scanned)
      for (const group of await this.#reader.selectGroups(whole, this.#selection)) {
        selected.push({ group, sql: group.sql })
      }
      const { metadataColumns: columns } = this.#selection
      const withPosition = { ...this.#selection, metadataColumns: [...columns, '_pos' as const] }
      for (const { scanned, from, to } of slices.filter((slice) => !isWhole(slice))) {
        for (const group of await this.#reader.selectGroups([scanned], withPosition)) {
          const sql = `select * exclude (_pos) from (${group.sql}) where _pos >= ${from} and _pos < ${to}`
          selected.push({ group, sql })
        }
      }
      return { sql: selected.map(({ sql }) => sql).join(' union all '), release }
    } catch (error) {
      await release()
      throw error
    }
  }
}
