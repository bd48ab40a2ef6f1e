import { tableName } from '../../catalogs/catalog.ts'
import type { ContentFile, PartitionValues } from '../../manifests/content-file.ts'
import { partitionKey } from '../../manifests/partition-key.ts'
import { partitionSpecOf, schemaOf } from '../../metadata/table-metadata.ts'
import { execute, explained, sqlName } from '../../parquet/duckdb.ts'
import type { ScanFile } from '../../scan/plan.ts'
import type { TableReader } from '../../scan/table-reader.ts'
import { NewFiles } from '../../storage/new-files.ts'
import { applyTransform } from '../../values/transform.ts'
import { measuredRowBytes } from '../../write/file-sizes.ts'
import { writeFile, type FileKind } from '../../write/write-files.ts'
import { assertNoNulls } from '../../write/write-relation.ts'
import { keyTable, type KeySource } from './distinct-keys.ts'
import type { EncodeContext, RowSource } from './row-source.ts'
import { orderTerm, sourceOf } from './order-sql.ts'
import { assertSameRows, tallyOf, type RowTally } from './proof.ts'
import { expectedOutputFiles, splitBytes } from './sizes.ts'
import { packed } from './candidates.ts'
import { wholeSlices } from './slices.ts'
import { zorderColumns, zorderWords } from './zorder.ts'
import { IcebergError } from '../../errors.ts'

// Rows that are sorted, or that go to other partitions, are all held in a table of DuckDB's, which spills to disk: in the
// order of their partition and then of the sort, so that every new file is a range of it.

/** Bytes of files that are on this machine at the same time, where they are copies. */
const batchBytes = 2 * 1024 ** 3

interface Part {
  readonly partition: PartitionValues
  readonly rows: number
}

/** Writes the rows of files anew: sorted, or in the partitions of another spec, or both. */
export async function encodeOrdered(
  encode: EncodeContext,
  reader: TableReader,
  source: RowSource,
  files: readonly ScanFile[],
): Promise<ContentFile[]> {
  const group = new OrderedGroup(encode, reader, source)
  const read = await group.load(files)
  if (read === undefined) return []
  const parts = await group.order(files)
  const bytes = files.reduce((sum, { file }) => sum + file.fileSizeInBytes, 0)
  return await group.write(parts, read, bytes)
}

class OrderedGroup {
  readonly #encode: EncodeContext
  readonly #reader: TableReader
  readonly #source: RowSource
  readonly #kind: FileKind

  constructor(encode: EncodeContext, reader: TableReader, source: RowSource) {
    this.#encode = encode
    this.#reader = reader
    this.#source = source
    const { order } = encode.settings
    this.#kind = { ...source.kind, sortOrderId: order?.kind === 'sort' ? order.orderId : 0 }
  }

  /** Reads all rows into the table `unordered`, and counts them on the way; undefined when the files have none. */
  async load(files: readonly ScanFile[]): Promise<RowTally | undefined> {
    const { tallies, signal } = this.#encode
    const { connection } = this.#reader
    const tally = tallies.open()
    try {
      const sized = files
        .filter(({ file }) => file.recordCount > 0)
        .map((scanned) => ({ scanned, bytes: scanned.file.fileSizeInBytes }))
      const batches = packed(sized, { maxBytes: batchBytes, maxFiles: 5000 })
      for (const [index, batch] of batches.entries()) {
        signal?.throwIfAborted()
        const { sql, release } = await this.#source.select(wholeSlices(batch.map(({ scanned }) => scanned)))
        try {
          const counted = tallies.counted(tally, this.#kind.fields, sql, this.#source.withHashes)
          await execute(
            connection,
            `${index === 0 ? 'create temp table unordered as' : 'insert into unordered'} ${counted}`,
          )
        } finally {
          await release()
        }
      }
      const read = tallies.close(tally)
      return batches.length === 0 ? undefined : read
    } finally {
      tallies.close(tally)
    }
  }

  /** Puts them into the table `ordered`, and tells how many of each partition come after each other. */
  async order(files: readonly ScanFile[]): Promise<Part[]> {
    const { connection } = this.#reader
    const joins: string[] = []
    const { partitions, terms } = await this.#route(files, joins)
    terms.push(...(await this.#terms(joins)))
    const columns = this.#kind.fields.map(({ name }) => `r.${sqlName(name)}`).join(', ')
    const { columns: zcolumns, words } = this.#zorder()
    const from = `(select r.*${zcolumns.map((each) => `, ${each}`).join('')} from unordered r) r ${joins.join(' ')}`
    const by = [...terms, ...words]
    const orderBy = by.length === 0 ? '' : ` order by ${by.join(', ')}`
    await execute(connection, `create temp table ordered as select ${columns} from ${from}${orderBy}`)
    const key = joins.length > 0 && partitions.length !== 1 ? 'route.key' : '0'
    const counts = `select ${key}, count(*)::double from unordered r ${key === '0' ? '' : joins[0]} group by 1 order by 1`
    const found = (await explained(connection.runAndReadAll(counts))).getRows()
    await execute(connection, 'drop table unordered')
    return found.map(([number, rows]) => ({
      partition: partitions[Number(number)] as PartitionValues,
      rows: Number(rows),
    }))
  }

  async write(parts: readonly Part[], read: RowTally, bytes: number): Promise<ContentFile[]> {
    const { table, signal } = this.#encode
    const newFiles = new NewFiles(table.storage, signal === undefined ? {} : { signal })
    const written: ContentFile[] = []
    const total = { rows: 0n, sum: 0n, xor: 0n }
    try {
      const rowBytes = await this.#rowBytes(Number(read.rows), bytes)
      let at = 0
      for (const { partition, rows } of parts) {
        for await (const { file, tally } of this.#filesOf(newFiles, partition, { from: at, rows, rowBytes })) {
          written.push(file)
          total.rows += tally.rows
          total.sum += tally.sum
          total.xor ^= tally.xor
        }
        at += rows
      }
      assertSameRows(read, total, { table: tableName(table.identifier), file: `${written.length} new files` })
      await newFiles.keep()
      return written
    } catch (error) {
      await newFiles.remove()
      throw error
    }
  }

  /** How large a row becomes: measured when they may fill more than one file. */
  async #rowBytes(rows: number, bytes: number): Promise<number> {
    const { table, settings } = this.#encode
    if (rows === 0 || bytes < settings.sizes.target / 2) return bytes / Math.max(1, rows)
    const { properties } = table.metadata
    const options = { fields: this.#kind.fields, modes: this.#kind.modes, properties }
    return await measuredRowBytes(this.#reader.connection, 'ordered', rows, options)
  }

  async *#filesOf(
    newFiles: NewFiles,
    partition: PartitionValues,
    { from, rows, ...measured }: { from: number; rows: number; rowBytes: number },
  ) {
    const { table, settings, signal } = this.#encode
    const { connection } = this.#reader
    const name = tableName(table.identifier)
    let { rowBytes } = measured
    for (let done = 0; done < rows;) {
      signal?.throwIfAborted()
      const bytes = (rows - done) * rowBytes
      const isLast = expectedOutputFiles(bytes, settings.sizes) === 1
      const next = isLast ? rows - done : Math.min(rows - done, Math.ceil(splitBytes(bytes, settings.sizes) / rowBytes))
      const select = `select * from ordered where rowid >= ${from + done} and rowid < ${from + done + next}`
      const tallies: RowTally[] = []
      const file = await writeFile(connection, newFiles, table, this.#kind, select, partition, async (_, path) => {
        await assertNoNulls(connection, path, schemaOf(table.metadata).fields, name)
        tallies.push(await tallyOf(connection, path, this.#kind.fields, this.#source.withHashes))
      })
      const [tally] = tallies
      if (tally === undefined || file.recordCount !== next) {
        throw new IcebergError('proof_failed', `${file.filePath} has ${file.recordCount} rows, not ${next}.`)
      }
      this.#encode.onWritten?.(file.fileSizeInBytes, file.fileSizeInBytes)
      yield { file, tally }
      rowBytes = file.fileSizeInBytes / next
      done += next
    }
  }

  /** Where rows go. Files that stay in their partition need no route. */
  async #route(
    files: readonly ScanFile[],
    joins: string[],
  ): Promise<{ partitions: PartitionValues[]; terms: string[] }> {
    const { table, settings } = this.#encode
    const spec = partitionSpecOf(table.metadata, settings.outputSpecId)
    const keys = new Set(files.map(({ file }) => partitionKey(file.specId, file.partition)))
    const [first] = files
    if (first !== undefined && keys.size === 1 && first.file.specId === spec.specId) {
      return { partitions: [first.file.partition], terms: [] }
    }
    const schema = schemaOf(table.metadata)
    const sources = spec.fields.map((field) =>
      field.transform.name === 'void' ? undefined : sourceOf(schema, field.sourceId),
    )
    for (const [index, field] of spec.fields.entries()) {
      if (sources[index] !== undefined || field.transform.name === 'void') continue
      throw new IcebergError(
        'metadata_unsupported',
        `Rows cannot be moved to partition spec ${spec.specId}: it needs column ${field.sourceId}, which the table does not have any more.`,
      )
    }
    const given = sources.filter((source): source is KeySource => source !== undefined)
    const partitions: PartitionValues[] = []
    const numbers = new Map<string, number>()
    const join = await keyTable(this.#reader.connection, 'route', 'unordered', given, (values) => {
      let next = 0
      const partition = spec.fields.map(({ transform }, index) => {
        const source = sources[index]
        if (source === undefined) return null
        const value = values[next++] ?? null
        return applyTransform(transform, source.type, value)
      })
      const key = partitionKey(spec.specId, partition)
      const number = numbers.get(key) ?? partitions.push(partition) - 1
      numbers.set(key, number)
      return number
    })
    joins.push(join)
    return { partitions, terms: ['route.key'] }
  }

  async #terms(joins: string[]): Promise<string[]> {
    const { table, settings } = this.#encode
    const { order } = settings
    if (order?.kind !== 'sort') return []
    const schema = schemaOf(table.metadata)
    const terms: string[] = []
    for (const [index, field] of order.fields.entries()) {
      const term = await orderTerm(schema, field, async (source) => {
        const name = `bucket_${index}`
        const of = ([value = null]: readonly Parameters<typeof applyTransform>[2][]): number | null => {
          const bucket = applyTransform(field.transform, source.type, value)
          return bucket === null ? null : Number(bucket)
        }
        joins.push(await keyTable(this.#reader.connection, name, 'unordered', [source], of))
        return `${name}.key`
      })
      if (term !== undefined) terms.push(term)
    }
    return terms
  }

  #zorder(): { columns: string[]; words: string[] } {
    const { table, settings } = this.#encode
    const { order, options } = settings
    if (order?.kind !== 'zorder') return { columns: [], words: [] }
    const schema = schemaOf(table.metadata)
    const sources = order.columns.map((id) => {
      const source = sourceOf(schema, id)
      if (source !== undefined) return source
      throw new IcebergError(
        'action_refused',
        `Rows cannot be z-ordered by column ${id}: it is gone, or inside a list or map.`,
      )
    })
    const limits = { varLengthBytes: options['var-length-contribution'], maxBytes: options['max-output-size'] }
    return { columns: zorderColumns(sources), words: zorderWords(sources, limits) }
  }
}
