import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import {
  createManifestWriter,
  createTableMetadata,
  DuckDb,
  isUnpartitioned,
  LocalStorage,
  planContext,
  PositionSet,
  rowToJson,
  scanRows,
  metadataColumns,
  Staging,
  writeDeletionVectors,
  writeManifestList,
  type ContentFile,
  type Field,
  type FormatVersion,
  type ManifestFile,
  type PartitionSpec,
  type PlainJson,
  type ScannedTable,
  type ScanOptions,
  type Schema,
  type TableMetadata,
  type Value,
} from '../../src/index.ts'

// Tables with exactly the files, ids and sequence numbers that a test wants, whatever a writer of ours would do.

export interface HandMadeOptions {
  /** Oldest first; the last is the present one. */
  readonly schemas: readonly (readonly Field[])[]
  /** Default: one, unpartitioned. */
  readonly specs?: readonly PartitionSpec[]
  readonly formatVersion?: FormatVersion
  readonly properties?: Record<string, string>
}

export interface FileOptions {
  readonly sequence?: bigint
  readonly specId?: number
  readonly partition?: readonly (Value | null)[]
  readonly name?: string
  readonly file?: Partial<ContentFile>
}

/** Files of this machine that are copied before they are read, as remote ones are. */
export class CopiedStorage extends LocalStorage {
  localPath(): string | undefined {
    return undefined
  }
}

const snapshotId = 7_000_000_000_000_000_001n

/** What tests of one file share, and close at the end. */
export class Workshop {
  readonly duckDb: DuckDb
  readonly staging: Staging
  readonly folder: string
  #tables = 0

  private constructor(duckDb: DuckDb, staging: Staging, folder: string) {
    this.duckDb = duckDb
    this.staging = staging
    this.folder = folder
  }

  static async open(): Promise<Workshop> {
    const folder = await mkdtemp(join(tmpdir(), 'hand-made-'))
    return new Workshop(await DuckDb.open({ threads: 2 }), await Staging.open({ folder }), folder)
  }

  async close(): Promise<void> {
    await this.duckDb.close()
    await this.staging.close()
    await rm(this.folder, { recursive: true })
  }

  table(options: HandMadeOptions): HandMadeTable {
    return new HandMadeTable(this, join(this.folder, `table-${(this.#tables += 1)}`), options)
  }
}

export class HandMadeTable {
  readonly #workshop: Workshop
  readonly #metadata: TableMetadata
  readonly #entries: { file: ContentFile; sequence: bigint }[] = []
  readonly storage = new LocalStorage()

  constructor(workshop: Workshop, location: string, options: HandMadeOptions) {
    this.#workshop = workshop
    const schemas: Schema[] = options.schemas.map((fields, schemaId) => ({ schemaId, identifierFieldIds: [], fields }))
    const formatVersion = options.formatVersion ?? 2
    const empty = createTableMetadata({ location, schema: { fields: [] }, formatVersion, nowMs: 1 })
    this.#metadata = {
      ...empty,
      schemas,
      currentSchemaId: schemas.length - 1,
      partitionSpecs: options.specs ?? [{ specId: 0, fields: [] }],
      properties: options.properties ?? {},
      lastSequenceNumber: 100n,
    }
  }

  /** A data file of the rows of a query; `ids` as FIELD_IDS of COPY, and none when it is undefined. */
  async data(query: string, ids: string | undefined, options: FileOptions = {}): Promise<string> {
    return await this.#parquet('data', query, ids, options)
  }

  async equality(query: string, ids: string, equalityIds: number[], options: FileOptions = {}): Promise<string> {
    return await this.#parquet('equality-deletes', query, ids, { ...options, file: { equalityIds, ...options.file } })
  }

  async positions(rows: readonly (readonly [path: string, position: number])[], options: FileOptions = {}) {
    const values = rows.map(([path, position]) => `('${path}', ${position}::bigint)`).join(', ')
    const query = `select * from (values ${values}) as t(file_path, pos)`
    return await this.#parquet('position-deletes', query, '{file_path: 2147483546, pos: 2147483545}', options)
  }

  async vector(dataPath: string, positions: readonly number[], options: FileOptions = {}): Promise<void> {
    const { content, vectors } = writeDeletionVectors([[dataPath, new PositionSet(positions)]])
    const path = join(this.#metadata.location, 'data', `${this.#entries.length}.puffin`)
    await this.storage.write(path, content)
    const [vector] = vectors
    this.#add('position-deletes', path, content.length, positions.length, {
      ...options,
      file: {
        fileFormat: 'puffin',
        referencedDataFile: dataPath,
        contentOffset: vector?.contentOffset,
        contentSizeInBytes: vector?.contentSizeInBytes,
        ...options.file,
      },
    })
  }

  async #parquet(content: ContentFile['content'], query: string, ids: string | undefined, options: FileOptions) {
    const path = join(this.#metadata.location, 'data', options.name ?? `${this.#entries.length}.parquet`)
    await this.storage.makeFolder(join(path, '..'))
    const fieldIds = ids === undefined ? '' : `, field_ids ${ids}`
    const [copied] = await this.#workshop.duckDb.query(`copy (${query}) to '${path}' (format parquet${fieldIds})`)
    this.#add(content, path, await this.storage.size(path), Number(copied?.['Count']), options)
    return path
  }

  #add(content: ContentFile['content'], filePath: string, size: number, recordCount: number, options: FileOptions) {
    const { sequence = 1n, specId = 0, partition = [], file } = options
    this.#entries.push({
      sequence,
      file: {
        content,
        filePath,
        fileFormat: 'parquet',
        specId,
        partition,
        recordCount,
        fileSizeInBytes: size,
        ...file,
      },
    })
  }

  /** The table with one snapshot of everything that was added. */
  async build(): Promise<ScannedTable> {
    const { formatVersion, location } = this.#metadata
    const manifests: ManifestFile[] = []
    for (const spec of this.#metadata.partitionSpecs) {
      for (const content of ['data', 'deletes'] as const) {
        const manifest = await this.#manifest(spec, content)
        if (manifest !== undefined) manifests.push(manifest)
      }
    }
    const list = writeManifestList(manifests, {
      formatVersion,
      snapshotId,
      parentSnapshotId: undefined,
      sequenceNumber: formatVersion === 1 ? 0n : 100n,
      firstRowId: 1000n,
    })
    const manifestList = join(location, 'metadata', 'list.avro')
    await this.storage.write(manifestList, list.content)
    const snapshot = { snapshotId, sequenceNumber: 100n, timestampMs: 1, manifestList, schemaId: 0 }
    const metadata = { ...this.#metadata, snapshots: [snapshot], currentSnapshotId: snapshotId }
    return { metadata, storage: this.storage }
  }

  async #manifest(spec: PartitionSpec, content: 'data' | 'deletes'): Promise<ManifestFile | undefined> {
    const { formatVersion, location, schemas } = this.#metadata
    const entries = this.#entries.filter(
      ({ file }) => file.specId === spec.specId && (file.content === 'data') === (content === 'data'),
    )
    if (entries.length === 0) return undefined
    const fields = schemas.toReversed().flatMap((schema) => schema.fields)
    const schema = { schemaId: 0, identifierFieldIds: [], fields: fields.filter(isFirst) }
    const writer = createManifestWriter({ formatVersion, content, schema, partitionSpec: spec, snapshotId })
    for (const { file, sequence } of entries) {
      const given = isUnpartitioned(spec) ? { ...file, partition: spec.fields.map(() => null) } : file
      const existing = { status: 'existing', snapshotId, sequenceNumber: sequence } as const
      writer.add({ ...existing, fileSequenceNumber: sequence, file: given })
    }
    const path = join(location, 'metadata', `manifest-${spec.specId}-${content}.avro`)
    const written = writer.finish(path)
    await this.storage.write(path, written.content)
    return written.manifest
  }

  /** The rows of the table as JSON, in the order of their texts. */
  async rows(options: ScanOptions = {}): Promise<Record<string, PlainJson>[]> {
    return await scannedRows(this.#workshop, await this.build(), options)
  }
}

function isFirst(field: Field, index: number, fields: readonly Field[]): boolean {
  return fields.findIndex(({ id }) => id === field.id) === index
}

async function scannedRows(
  { duckDb, staging }: Workshop,
  table: ScannedTable,
  options: ScanOptions = {},
): Promise<Record<string, PlainJson>[]> {
  const { schema } = planContext(table.metadata, options)
  const columns = options.columns?.map((name) => schema.fields.find((field) => field.name === name) as Field)
  const extra = (options.metadataColumns ?? []).map((name) => metadataColumns[name])
  const rows: Record<string, PlainJson>[] = []
  for await (const batch of scanRows(table, { duckDb, staging, ...options })) {
    for (const row of batch) rows.push(rowToJson([...(columns ?? schema.fields), ...extra], row))
  }
  return rows.toSorted((a, b) => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1))
}

export const optional = (id: number, name: string, type: Field['type'] | 'int' | 'long' | 'string'): Field => ({
  id,
  name,
  required: false,
  type: typeof type === 'string' ? { type } : type,
})
