import type { LoadedTable } from '../../catalogs/catalog.ts'
import { schemaOf, sortOrderOf } from '../../metadata/table-metadata.ts'
import { sqlText, type DuckDb } from '../../parquet/duckdb.ts'
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
  /** Whether files may be copied: the statistics of the new ones are made of those, which must have been read. */
  readonly copies: boolean
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

  /**
   * The rows of slices, in their order as far as they can be read as one. All files are staged in one call: whoever holds
   * some and asks for more may wait for ever.
   */
  async select(slices: readonly Slice[]): Promise<{ sql: string; release: () => Promise<void> }> {
    const cut = slices.filter((slice) => !isWhole(slice))
    const { metadataColumns: columns } = this.#selection
    const places = cut.length === 0 ? [] : (['_file', '_pos'] as const)
    const groups = await this.#reader.selectGroups(
      slices.map(({ scanned }) => scanned),
      { ...this.#selection, metadataColumns: [...columns, ...places] },
    )
    const release = async (): Promise<void> => {
      for (const group of groups) await group.release()
    }
    return { sql: groups.map((group) => rowsOf(group, cut)).join(' union all '), release }
  }
}

/** The rows of a group, of files that are cut only those of their slices. */
function rowsOf({ sql, files }: SelectedGroup, cut: readonly Slice[]): string {
  if (cut.length === 0) return sql
  const wanted = cut
    .filter(({ scanned }) => files.includes(scanned))
    .map(({ scanned, from, to }) => {
      const path = sqlText(scanned.file.filePath)
      return `(_file <> ${path} or (_pos >= ${from} and _pos < ${to}))`
    })
  const where = wanted.length === 0 ? '' : ` where ${wanted.join(' and ')}`
  return `select * exclude (_file, _pos) from (${sql})${where}`
}
