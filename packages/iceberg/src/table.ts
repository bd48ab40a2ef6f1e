import type { Catalog, LoadedTable, NewTable, TableIdentifier } from './catalogs/catalog.ts'
import { commitTable, type BuiltCommit, type CommitOptions } from './commit/index.ts'
import { IcebergError } from './errors.ts'
import { tableFacts, type FactsOptions, type TableFacts } from './facts/table-facts.ts'
import type { ContentFile, ManifestEntry } from './manifests/content-file.ts'
import { partitionSpecUpdates, type PartitionChange } from './metadata/evolve-partition-spec.ts'
import { schemaUpdates, type SchemaChange } from './metadata/evolve-schema.ts'
import { sortOrderUpdates, type SortColumn } from './metadata/evolve-sort-order.ts'
import type { Snapshot } from './metadata/snapshot.ts'
import { dropRef, moveBranch, sameTable, setRef, type Changes, type Retention } from './metadata/refs.ts'
import { currentSnapshot, mainBranch, type FormatVersion, type TableMetadata } from './metadata/table-metadata.ts'
import { DuckDb } from './parquet/duckdb.ts'
import { PositionSet } from './puffin/position-set.ts'
import type { ScannedRow } from './scan/row-value.ts'
import { scanRows, type ScanOptions } from './scan/rows.ts'
import { buildSnapshot, type SnapshotChange } from './write/build-snapshot.ts'
import { assertReachAll, writeEqualityDeletes } from './write/equality-deletes.ts'
import { removal, type Replaced } from './write/overwrite.ts'
import { positionDeletes, type Positions } from './write/position-deletes.ts'
import { removeFiles } from './write/remove-files.ts'
import { SnapshotWork } from './write/snapshot-work.ts'
import { writeDataFiles, type Rows, type WriteFilesOptions } from './write/write-files.ts'

export interface OpenTableOptions {
  /** Writes and reads rows. Default: one of its own, opened when it is needed and closed with the table. */
  readonly duckDb?: DuckDb
}

/** Of a commit that makes a snapshot. */
export interface SnapshotOptions extends Omit<CommitOptions, 'loaded'> {
  /** Default: main. */
  readonly branch?: string
  /** Goes into the snapshot's summary, beside the counts. */
  readonly summary?: Readonly<Record<string, string>>
}

type ChangeOptions = Omit<CommitOptions, 'loaded'>

export async function openTable(
  catalog: Catalog,
  identifier: TableIdentifier,
  options: OpenTableOptions = {},
): Promise<Table> {
  return new Table(catalog, await catalog.loadTable(identifier), options)
}

export async function createTable(
  catalog: Catalog,
  identifier: TableIdentifier,
  newTable: NewTable,
  options: OpenTableOptions = {},
): Promise<Table> {
  return new Table(catalog, await catalog.createTable(identifier, newTable), options)
}

/**
 * The front door of a table. Every change is one commit, made anew on the fresh table when another came first, and throws
 * when it was not applied (what it wrote is removed then) or when that is unknown (`commit_unknown`).
 */
export class Table {
  readonly #catalog: Catalog
  readonly #givenDuckDb: DuckDb | undefined
  #ownDuckDb: Promise<DuckDb> | undefined
  #loaded: LoadedTable

  constructor(catalog: Catalog, loaded: LoadedTable, options: OpenTableOptions = {}) {
    this.#catalog = catalog
    this.#loaded = loaded
    this.#givenDuckDb = options.duckDb
  }

  /** As it was last loaded or committed. */
  get loaded(): LoadedTable {
    return this.#loaded
  }

  get metadata(): TableMetadata {
    return this.#loaded.metadata
  }

  async refresh(): Promise<void> {
    this.#loaded = await this.#catalog.loadTable(this.#loaded.identifier, { known: this.#loaded })
  }

  /** Ends the DuckDB that the table opened for itself. */
  async close(): Promise<void> {
    await (await this.#ownDuckDb)?.close()
    this.#ownDuckDb = undefined
  }

  /** Streams the live rows in batches and in no order, with the table's own DuckDB unless another is given. */
  async *scan(options: ScanOptions = {}): AsyncGenerator<ScannedRow[]> {
    yield* scanRows(this.#loaded, { duckDb: await this.#duckdb(), ...options })
  }

  /** Returns what the metadata and the manifests tell of the table's health. */
  async facts(options: FactsOptions = {}): Promise<TableFacts> {
    return await tableFacts(this.#loaded, options)
  }

  /** Adds rows. Nothing is committed when there are none. */
  async append(rows: Rows, options: SnapshotOptions & WriteFilesOptions = {}): Promise<Snapshot | undefined> {
    const added = await writeDataFiles(await this.#duckdb(), this.#loaded, rows, options)
    return await this.appendFiles(added, options)
  }

  /** Adds data files that are written already, by `writeDataFiles` for one. They are removed if this fails. */
  async appendFiles(added: readonly ContentFile[], options: SnapshotOptions = {}): Promise<Snapshot | undefined> {
    if (added.length === 0) return undefined
    return await this.#commitSnapshot(async () => ({ added, operation: 'append' }), options, added)
  }

  /** Puts rows in the place of others: of everything, of whole partitions or of files. Counted at the commit. */
  async overwrite(
    rows: Rows,
    options: SnapshotOptions & WriteFilesOptions & { readonly replace?: Replaced } = {},
  ): Promise<Snapshot | undefined> {
    const added = await writeDataFiles(await this.#duckdb(), this.#loaded, rows, options)
    const { replace = 'table' } = options
    return await this.#commitSnapshot(async (_, head) => ({ added, ...removal(head, replace, added) }), options, added)
  }

  /** Removes data files with all their rows: those named, or all that the test picks. */
  async deleteFiles(
    files: readonly string[] | ((entry: ManifestEntry) => boolean),
    options: SnapshotOptions = {},
  ): Promise<Snapshot | undefined> {
    const replace = { files }
    return await this.#commitSnapshot(
      async (_, head) => ({ added: [], operation: 'delete', ...removal(head, replace, []) }),
      options,
    )
  }

  /** Deletes rows by file and position: as deletion vectors in v3, as files of positions in v2. */
  async deletePositions(
    positions: Positions,
    options: SnapshotOptions & { readonly granularity?: 'file' | 'partition' } = {},
  ): Promise<Snapshot | undefined> {
    const duckdb = await this.#duckdb()
    const { granularity = 'file' } = options
    // Held, for every try goes over them, and an iterator can be gone over once.
    const held = new Map([...positions].map(([path, list]) => [path, new PositionSet(list)]))
    return await this.#commitSnapshot((table, head) => positionDeletes(duckdb, table, head, held, granularity), options)
  }

  /** Deletes every row there is that equals one of the keys in these columns; `append` adds rows in the same commit. */
  async deleteEqual(
    columns: readonly string[],
    keys: Rows,
    options: SnapshotOptions & { readonly append?: Rows } = {},
  ): Promise<Snapshot | undefined> {
    const duckdb = await this.#duckdb()
    const deletes = await writeEqualityDeletes(duckdb, this.#loaded, columns, keys)
    const added = [...deletes]
    try {
      if (options.append !== undefined) added.push(...(await writeDataFiles(duckdb, this.#loaded, options.append)))
    } catch (error) {
      await removeFiles(this.#loaded, deletes)
      throw error
    }
    if (added.length === 0) return undefined
    return await this.#commitSnapshot(
      async (table) => {
        assertReachAll(table, deletes)
        return { added }
      },
      options,
      added,
    )
  }

  async createBranch(
    name: string,
    options: Retention & ChangeOptions & { snapshotId?: bigint; replace?: boolean } = {},
  ) {
    await this.#commitChanges((m) => setRef(m, name, 'branch', refOptions(options)), options)
  }

  async createTag(
    name: string,
    options: Omit<Retention, 'minSnapshotsToKeep' | 'maxSnapshotAgeMs'> &
      ChangeOptions & { snapshotId?: bigint; replace?: boolean } = {},
  ) {
    await this.#commitChanges((m) => setRef(m, name, 'tag', refOptions(options)), options)
  }

  async dropRef(name: string, options: ChangeOptions = {}): Promise<void> {
    await this.#commitChanges((m) => dropRef(m, name), options)
  }

  /** Brings a branch back to a snapshot of its own past. */
  async rollbackTo(snapshotId: bigint, options: ChangeOptions & { readonly branch?: string } = {}): Promise<void> {
    await this.#commitChanges((m) => moveBranch(m, options.branch ?? mainBranch, snapshotId, true), options)
  }

  /** Brings a branch to any snapshot of the table. */
  async setSnapshot(snapshotId: bigint, options: ChangeOptions & { readonly branch?: string } = {}): Promise<void> {
    await this.#commitChanges((m) => moveBranch(m, options.branch ?? mainBranch, snapshotId, false), options)
  }

  async updateSchema(changes: readonly SchemaChange[], options: ChangeOptions = {}): Promise<void> {
    await this.#commitChanges(
      (m) => ({
        requirements: [
          ...sameTable(m),
          { type: 'assert-current-schema-id', currentSchemaId: m.currentSchemaId },
          { type: 'assert-last-assigned-field-id', lastAssignedFieldId: m.lastColumnId },
        ],
        updates: schemaUpdates(m, changes),
      }),
      options,
    )
  }

  async updatePartitionSpec(changes: readonly PartitionChange[], options: ChangeOptions = {}): Promise<void> {
    await this.#commitChanges(
      (m) => ({
        requirements: [
          ...sameTable(m),
          { type: 'assert-default-spec-id', defaultSpecId: m.defaultSpecId },
          { type: 'assert-last-assigned-partition-id', lastAssignedPartitionId: m.lastPartitionId },
        ],
        updates: partitionSpecUpdates(m, changes),
      }),
      options,
    )
  }

  async updateSortOrder(columns: readonly SortColumn[], options: ChangeOptions = {}): Promise<void> {
    await this.#commitChanges(
      (m) => ({
        requirements: [
          ...sameTable(m),
          { type: 'assert-default-sort-order-id', defaultSortOrderId: m.defaultSortOrderId },
        ],
        updates: sortOrderUpdates(m, columns),
      }),
      options,
    )
  }

  async setProperties(updates: Readonly<Record<string, string>>, options: ChangeOptions = {}): Promise<void> {
    await this.#commitChanges(
      (m) => ({ requirements: sameTable(m), updates: [{ action: 'set-properties', updates }] }),
      options,
    )
  }

  async removeProperties(removals: readonly string[], options: ChangeOptions = {}): Promise<void> {
    await this.#commitChanges(
      (m) => ({ requirements: sameTable(m), updates: [{ action: 'remove-properties', removals }] }),
      options,
    )
  }

  async upgradeFormatVersion(formatVersion: FormatVersion, options: ChangeOptions = {}): Promise<void> {
    await this.#commitChanges(
      (m) => ({ requirements: sameTable(m), updates: [{ action: 'upgrade-format-version', formatVersion }] }),
      options,
    )
  }

  #duckdb(): Promise<DuckDb> {
    if (this.#givenDuckDb !== undefined) return Promise.resolve(this.#givenDuckDb)
    this.#ownDuckDb ??= DuckDb.open()
    return this.#ownDuckDb
  }

  async #commitSnapshot(
    change: (table: LoadedTable, head: Snapshot | undefined) => Promise<SnapshotChange>,
    options: SnapshotOptions,
    written: readonly ContentFile[] = [],
  ): Promise<Snapshot | undefined> {
    const branch = options.branch ?? mainBranch
    const work = new SnapshotWork()
    let isSent = false
    try {
      const built = await this.#commit(async (table, attempt) => {
        const made = await change(table, currentSnapshot(table.metadata, branch))
        const removesFiles = made.removes !== undefined || (made.removed ?? []).length > 0
        if (made.added.length === 0 && !removesFiles) return undefined
        const summary = { ...made.summary, ...options.summary }
        const snapshotCommit = await buildSnapshot(table, branch, { ...made, summary }, attempt, {
          work,
          signal: options.signal,
        })
        isSent = true
        return snapshotCommit
      }, options)
      const update = built?.updates.find((one) => one.action === 'add-snapshot')
      return update?.snapshot
    } catch (error) {
      // Nothing was ever sent, so nobody else knows the files. Later it is for the commit to say what may go.
      if (!isSent) await removeFiles(this.#loaded, written)
      throw error
    }
  }

  async #commitChanges(change: (metadata: TableMetadata) => Changes, options: ChangeOptions): Promise<void> {
    await this.#commit(async (table) => ({ ...change(table.metadata), files: [] }), options)
  }

  async #commit(
    build: (table: LoadedTable, attempt: number) => Promise<BuiltCommit | undefined>,
    { guard, inTransaction, signal, pause }: ChangeOptions,
  ): Promise<BuiltCommit | undefined> {
    const outcome = await commitTable(this.#catalog, this.#loaded.identifier, build, {
      tableUuid: this.metadata.tableUuid,
      ...(guard !== undefined && { guard }),
      ...(inTransaction !== undefined && { inTransaction }),
      ...(signal !== undefined && { signal }),
      ...(pause !== undefined && { pause }),
    })
    if (outcome.outcome === 'applied') {
      this.#loaded = outcome.table
      return outcome.built
    }
    if (outcome.outcome === 'unknown') throw outcome.error
    if (outcome.why === 'nothing_to_do') return undefined
    throw outcome.error ?? new IcebergError('commit_conflict', `${this.#loaded.identifier.name} was not changed.`)
  }
}

function refOptions({
  guard: _guard,
  inTransaction: _inTransaction,
  signal: _signal,
  pause: _pause,
  ...rest
}: Retention & ChangeOptions & { snapshotId?: bigint; replace?: boolean }) {
  return rest
}
