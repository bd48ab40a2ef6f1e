import { AvroReader } from '../avro/avro-reader.ts'
import type { AvroSchema } from '../avro/avro-schema.ts'
import { branchOf, compileNumber, compileOptional, compileSkip, compileString } from '../avro/compile.ts'
import { openAvro } from '../avro/container.ts'
import { IcebergError } from '../errors.ts'
import type { FileContent } from './content-file.ts'

// Manifests and manifest lists read for the paths in them and nothing else: everything else is passed over. No partition
// spec is needed, so tables with unknown transforms can be walked too.

/** A manifest as a manifest list names it. */
export interface ListedManifest {
  readonly path: string
  readonly bytes: number
  readonly specId: number
}

/** A live file of a manifest. A Puffin file with several vectors comes once for each. */
export interface ManifestPath {
  readonly path: string
  readonly content: FileContent
  readonly bytes: number
}

/** Some writers put a whole manifest into one block. */
const batchEntries = 4096

class Draft {
  status = 0
  content = 0
  path = ''
  bytes = 0
  specId = 0
  hasKey = false
}
type Step = (reader: AvroReader, draft: Draft) => void
type Field = readonly [id: number, name: string, compile: (schema: AvroSchema) => Step]

const text = (assign: (draft: Draft, value: string) => void) => (schema: AvroSchema) => {
  const read = compileOptional(schema, compileString)
  return (r: AvroReader, draft: Draft): void => assign(draft, read(r) ?? '')
}
const number = (assign: (draft: Draft, value: number) => void) => (schema: AvroSchema) => {
  const read = compileOptional(schema, compileNumber)
  return (r: AvroReader, draft: Draft): void => assign(draft, read(r) ?? 0)
}

const listFields: readonly Field[] = [
  [500, 'manifest_path', text((d, v) => (d.path = v))],
  [501, 'manifest_length', number((d, v) => (d.bytes = v))],
  [502, 'partition_spec_id', number((d, v) => (d.specId = v))],
  [519, 'key_metadata', keyMetadata],
]

const fileFields: readonly Field[] = [
  [134, 'content', number((d, v) => (d.content = v))],
  [100, 'file_path', text((d, v) => (d.path = v))],
  [104, 'file_size_in_bytes', number((d, v) => (d.bytes = v))],
]

const entryFields: readonly Field[] = [
  [0, 'status', number((d, v) => (d.status = v))],
  [2, 'data_file', dataFile],
]

/** An encrypted manifest cannot be read: what it refers to would be thought to be nobody's. */
function keyMetadata(schema: AvroSchema): Step {
  const read = compileOptional(schema, (s) => {
    if (s.kind === 'bytes' || s.kind === 'string') return (r) => r.bytes().length
    const skip = compileSkip(s)
    return (r) => {
      skip(r)
      return 1
    }
  })
  return (r, draft) => {
    draft.hasKey = (read(r) ?? 0) > 0
  }
}

function dataFile(schema: AvroSchema): Step {
  if (schema.kind !== 'union') return compileFields(schema, fileFields)
  const branches = schema.branches.map((branch): Step => {
    if (branch.kind !== 'null') return compileFields(branch, fileFields)
    return () => {
      throw new IcebergError('manifest_invalid', 'A manifest entry has no data file')
    }
  })
  return (r, draft) => branchOf(branches, r.number())(r, draft)
}

function compileFields(schema: AvroSchema, wanted: readonly Field[]): Step {
  if (schema.kind !== 'record') throw new IcebergError('avro_invalid', 'A manifest does not hold records')
  const steps = schema.fields.map((field): Step => {
    const found = wanted.find(([id, name]) => (field.id === undefined ? name === field.name : id === field.id))
    return found === undefined ? compileSkip(field.schema) : found[2](field.schema)
  })
  return (r, draft) => {
    for (const step of steps) step(r, draft)
  }
}

const compiledLists = new WeakMap<AvroSchema, Step>()
const compiledEntries = new WeakMap<AvroSchema, Step>()

function compiled(known: WeakMap<AvroSchema, Step>, schema: AvroSchema, fields: readonly Field[]): Step {
  const step = known.get(schema) ?? compileFields(schema, fields)
  known.set(schema, step)
  return step
}

/** The manifests that a manifest list names. */
export function readManifestListPaths(file: Uint8Array, location: string): ListedManifest[] {
  const avro = openAvro(file, location)
  const fill = compiled(compiledLists, avro.schema, listFields)
  const manifests: ListedManifest[] = []
  for (const block of avro.blocks()) {
    const reader = new AvroReader(block.data)
    for (let left = block.count; left > 0; left -= 1) {
      const draft = new Draft()
      fill(reader, draft)
      if (draft.path === '') throw new IcebergError('manifest_invalid', `${location} lacks the path of a manifest`)
      if (draft.hasKey) {
        throw new IcebergError('metadata_unsupported', `${draft.path} is encrypted; encryption is not supported`)
      }
      manifests.push({ path: draft.path, bytes: draft.bytes, specId: draft.specId })
    }
    assertRead(reader, location)
  }
  return manifests
}

const contents: readonly FileContent[] = ['data', 'position-deletes', 'equality-deletes']
const deletedStatus = 2

/** The live files of a manifest, some at a time. Entries that say that a file was deleted are left out. */
export function* readManifestPaths(file: Uint8Array, location: string): Generator<ManifestPath[]> {
  const avro = openAvro(file, location)
  const fill = compiled(compiledEntries, avro.schema, entryFields)
  for (const block of avro.blocks()) {
    const reader = new AvroReader(block.data)
    for (let left = block.count; left > 0;) {
      const paths: ManifestPath[] = []
      for (let n = Math.min(left, batchEntries); n > 0; n -= 1, left -= 1) {
        const draft = new Draft()
        fill(reader, draft)
        if (draft.status === deletedStatus) continue
        const content = contents[draft.content]
        if (draft.path === '' || content === undefined) {
          throw new IcebergError('manifest_invalid', `${location} has an entry without a path, or of unknown content`)
        }
        paths.push({ path: draft.path, content, bytes: draft.bytes })
      }
      if (paths.length > 0) yield paths
    }
    assertRead(reader, location)
  }
}

function assertRead(reader: AvroReader, location: string): void {
  if (reader.atEnd) return
  throw new IcebergError('avro_invalid', `${location} is damaged: a block is longer than its entries`)
}
