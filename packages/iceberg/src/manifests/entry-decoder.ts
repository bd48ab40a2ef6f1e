import type { AvroReader } from '../avro/avro-reader.ts'
import { recordFields, type AvroSchema } from '../avro/avro-schema.ts'
import {
  branchOf,
  compileBigint,
  compileBytes,
  compileList,
  compileNumber,
  compileOptional,
  compileRepeatedString,
  compileRequired,
  compileSkip,
  compileString,
  type Read,
} from '../avro/compile.ts'
import { compileLazyMap, compileSkipLazyMap } from '../avro/lazy-map.ts'
import { IcebergError } from '../errors.ts'
import { typeName } from '../schema/type.ts'
import type { ContentFile, EntryStatus, FileContent, FileFormat, PartitionValues } from './content-file.ts'
import { compilePartition } from './partition-values.ts'
import type { PartitionTypeField } from './partition-type.ts'

/** A file while it is being read; the same members in the same order for all, which keeps access to them quick. */
class DecodedFile implements ContentFile {
  content: FileContent = 'data'
  filePath = ''
  fileFormat: FileFormat = 'parquet'
  specId = 0
  partition: PartitionValues = []
  recordCount = 0
  fileSizeInBytes = 0
  columnSizes: ReadonlyMap<number, number> | undefined = undefined
  valueCounts: ReadonlyMap<number, number> | undefined = undefined
  nullValueCounts: ReadonlyMap<number, number> | undefined = undefined
  nanValueCounts: ReadonlyMap<number, number> | undefined = undefined
  lowerBounds: ReadonlyMap<number, Uint8Array> | undefined = undefined
  upperBounds: ReadonlyMap<number, Uint8Array> | undefined = undefined
  splitOffsets: readonly number[] | undefined = undefined
  equalityIds: readonly number[] | undefined = undefined
  sortOrderId: number | undefined = undefined
  firstRowId: bigint | undefined = undefined
  referencedDataFile: string | undefined = undefined
  contentOffset: number | undefined = undefined
  contentSizeInBytes: number | undefined = undefined
  keyMetadata: Uint8Array | undefined = undefined
}

/** An entry as it stands in the file, before it inherits anything. */
export class DecodedEntry {
  status: EntryStatus = 'existing'
  snapshotId: bigint | undefined = undefined
  sequenceNumber: bigint | undefined = undefined
  fileSequenceNumber: bigint | undefined = undefined
  file: DecodedFile = new DecodedFile()
}

type Step = (reader: AvroReader, entry: DecodedEntry) => void
type Compile = (schema: AvroSchema, context: Context) => Step

interface Context {
  readonly partition: readonly PartitionTypeField[]
  /** Whether counts, sizes and bounds by column are wanted. */
  readonly statistics: boolean
}

function number(assign: (entry: DecodedEntry, value: number | undefined) => void): Compile {
  return (schema) => {
    const read = compileOptional(schema, compileNumber)
    return (r, entry) => assign(entry, read(r))
  }
}

function bigint(assign: (entry: DecodedEntry, value: bigint | undefined) => void): Compile {
  return (schema) => {
    const read = compileOptional(schema, compileBigint)
    return (r, entry) => assign(entry, read(r))
  }
}

type MapName = 'columnSizes' | 'valueCounts' | 'nullValueCounts' | 'nanValueCounts'

function counts(name: MapName): Compile {
  return (schema, { statistics }) => {
    if (!statistics) return compileOptional(schema, compileSkipLazyMap)
    const read = compileOptional(schema, (s) => compileLazyMap(s, compileNumber))
    return (r, entry) => {
      entry.file[name] = read(r)
    }
  }
}

function bounds(name: 'lowerBounds' | 'upperBounds'): Compile {
  return (schema, { statistics }) => {
    if (!statistics) return compileOptional(schema, compileSkipLazyMap)
    const read = compileOptional(schema, (s) => compileLazyMap<Uint8Array>(s, compileBytes))
    return (r, entry) => {
      entry.file[name] = read(r)
    }
  }
}

function numbers(name: 'splitOffsets' | 'equalityIds'): Compile {
  return (schema) => {
    const read = compileOptional(schema, (s) =>
      compileList(s, (items) => compileRequired(items, compileNumber, 'A number of a list')),
    )
    return (r, entry) => {
      entry.file[name] = read(r)
    }
  }
}

const statuses: readonly EntryStatus[] = ['existing', 'added', 'deleted']
const contents: readonly FileContent[] = ['data', 'position-deletes', 'equality-deletes']

function named<T>(names: readonly T[], index: number | undefined, what: string): T {
  const name = names[index ?? 0]
  if (name === undefined) throw new IcebergError('manifest_invalid', `A manifest entry has the ${what} ${index}`)
  return name
}

/** How a field of a manifest is read, by its field id. */
const fieldReaders: ReadonlyMap<number, readonly [name: string, compile: Compile]> = new Map<number, [string, Compile]>(
  [
    [0, ['status', number((e, v) => (e.status = named(statuses, v, 'status')))]],
    [1, ['snapshot_id', bigint((e, v) => (e.snapshotId = v))]],
    [3, ['sequence_number', bigint((e, v) => (e.sequenceNumber = v))]],
    [4, ['file_sequence_number', bigint((e, v) => (e.fileSequenceNumber = v))]],
    [2, ['data_file', dataFile]],
    [134, ['content', number((e, v) => (e.file.content = named(contents, v, 'content')))]],
    [100, ['file_path', filePath]],
    [101, ['file_format', fileFormat]],
    [102, ['partition', partition]],
    [103, ['record_count', number((e, v) => (e.file.recordCount = v ?? 0))]],
    [104, ['file_size_in_bytes', number((e, v) => (e.file.fileSizeInBytes = v ?? 0))]],
    [108, ['column_sizes', counts('columnSizes')]],
    [109, ['value_counts', counts('valueCounts')]],
    [110, ['null_value_counts', counts('nullValueCounts')]],
    [137, ['nan_value_counts', counts('nanValueCounts')]],
    [125, ['lower_bounds', bounds('lowerBounds')]],
    [128, ['upper_bounds', bounds('upperBounds')]],
    [131, ['key_metadata', keyMetadata]],
    [132, ['split_offsets', numbers('splitOffsets')]],
    [135, ['equality_ids', numbers('equalityIds')]],
    [140, ['sort_order_id', number((e, v) => (e.file.sortOrderId = v))]],
    [142, ['first_row_id', bigint((e, v) => (e.file.firstRowId = v))]],
    [143, ['referenced_data_file', referencedDataFile]],
    [144, ['content_offset', number((e, v) => (e.file.contentOffset = v))]],
    [145, ['content_size_in_bytes', number((e, v) => (e.file.contentSizeInBytes = v))]],
  ],
)

const idsByName = new Map([...fieldReaders].map(([id, [name]]) => [name, id]))

/** Some writers, BigQuery among them, let it be null. It never is. */
function dataFile(schema: AvroSchema, context: Context): Step {
  if (schema.kind !== 'union') return compileSteps(schema, context)
  const branches = schema.branches.map((branch): Step => {
    if (branch.kind !== 'null') return compileSteps(branch, context)
    return () => {
      throw new IcebergError('manifest_invalid', 'A manifest entry has no data file')
    }
  })
  return (r, entry) => branchOf(branches, r.number())(r, entry)
}

function filePath(schema: AvroSchema): Step {
  const read = compileRequired(schema, compileString, 'The path of a file')
  return (r, entry) => {
    entry.file.filePath = read(r)
  }
}

function fileFormat(schema: AvroSchema): Step {
  const compile = (s: AvroSchema): Read<string> => compileRepeatedString(s, (text) => text.toLowerCase())
  const read = compileRequired(schema, compile, 'The format of a file')
  return (r, entry) => {
    entry.file.fileFormat = read(r)
  }
}

function partition(schema: AvroSchema, context: Context): Step {
  const read = compileOptional(schema, (s) => compilePartition(s, context.partition))
  return (r, entry) => {
    entry.file.partition = read(r) ?? []
  }
}

function keyMetadata(schema: AvroSchema): Step {
  const read = compileOptional(schema, compileBytes)
  return (r, entry) => {
    const bytes = read(r)
    entry.file.keyMetadata = bytes === undefined ? undefined : Buffer.from(bytes)
  }
}

function referencedDataFile(schema: AvroSchema): Step {
  const read = compileOptional(schema, compileString)
  return (r, entry) => {
    entry.file.referencedDataFile = read(r)
  }
}

function compileSteps(schema: AvroSchema, context: Context): Step {
  if (schema.kind !== 'record') throw new IcebergError('avro_invalid', 'A manifest does not hold records')
  const steps = schema.fields.map((field): Step => {
    const compile = fieldReaders.get(field.id ?? idsByName.get(field.name) ?? -1)?.[1]
    return compile === undefined ? compileSkip(field.schema) : compile(field.schema, context)
  })
  return (r, entry) => {
    for (const step of steps) step(r, entry)
  }
}

const compiled = new WeakMap<AvroSchema, Map<string, Read<DecodedEntry>>>()

/** The reader of a manifest's entries for the schema its writer used; compiled once for each schema and context. */
export function compileEntry(schema: AvroSchema, context: Context): Read<DecodedEntry> {
  const key = `${context.statistics} ${context.partition.map((f) => `${f.fieldId} ${typeName(f.type)} ${f.name}`).join()}`
  const known = compiled.get(schema)?.get(key)
  if (known !== undefined) return known
  requireFields(schema)
  const fill = compileSteps(schema, context)
  const read: Read<DecodedEntry> = (r) => {
    const entry = new DecodedEntry()
    fill(r, entry)
    return entry
  }
  compiled.set(schema, (compiled.get(schema) ?? new Map<string, Read<DecodedEntry>>()).set(key, read))
  return read
}

function requireFields(schema: AvroSchema): void {
  const fields = recordFields(schema)
  const file = fields.find((field) => (field.id ?? idsByName.get(field.name)) === 2)?.schema
  const ids = [...fields, ...recordFields(file)].map((f) => f.id ?? idsByName.get(f.name))
  for (const id of [0, 2, 100, 101, 103, 104]) {
    if (ids.includes(id)) continue
    throw new IcebergError(
      'manifest_invalid',
      `A manifest lacks the required field ${fieldReaders.get(id)?.[0]} (${id})`,
    )
  }
}
