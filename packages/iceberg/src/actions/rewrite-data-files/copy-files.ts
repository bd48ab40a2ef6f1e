import { tableName } from '../../catalogs/catalog.ts'
import { IcebergError } from '../../errors.ts'
import type { ContentFile } from '../../manifests/content-file.ts'
import { partitionPath } from '../../manifests/partition-path.ts'
import { partitionTypesOf } from '../../manifests/partition-type.ts'
import { partitionSpecOf, schemaOf } from '../../metadata/table-metadata.ts'
import { joinable, type JoinInput } from '../../parquet/join/joinable.ts'
import { joinFiles } from '../../parquet/join/join-files.ts'
import { readWholeFooter } from '../../parquet/join/whole-footer.ts'
import type { ScanFile } from '../../scan/plan.ts'
import { forEachLimited } from '../../storage/each.ts'
import { newDataLocation } from '../../write/data-location.ts'
import { removeFiles } from '../../write/remove-files.ts'
import { assertCanAddFiles } from '../../write/write-files.ts'
import { copyObstacle, staysInPlace } from './copyable.ts'
import type { SizeLimits } from './options.ts'
import type { EncodeContext } from './row-source.ts'

/** Footers that are read at the same time. */
const parallelFooters = 8

interface Input extends JoinInput {
  readonly scanned: ScanFile
}

export interface CopiedFiles {
  readonly added: readonly ContentFile[]
  /** The files that are not in the new ones. */
  readonly rest: readonly ScanFile[]
}

/**
 * Makes large files of those of a group that can be joined by copying their bytes, and says which others are left. A
 * remainder that would be a small file again is left to be encoded with the others, unless it is all that is left or
 * nothing of the table can be encoded.
 */
export async function copyFiles(
  context: EncodeContext,
  files: readonly ScanFile[],
  canEncode: boolean,
): Promise<CopiedFiles> {
  const { table, settings } = context
  if (!staysInPlace(files, settings)) return { added: [], rest: files }
  const candidates = files.filter((file) => copyObstacle(file, settings) === undefined)
  if (candidates.length < 2) return { added: [], rest: files }
  assertCanAddFiles(table)
  const { sets } = joinable(await readInputs(context, candidates), {
    minRowGroupBytes: settings.options['copy-min-row-group-bytes'],
    lineage: table.metadata.formatVersion >= 3,
  })
  const bins = sets.flatMap((set) => binsOf(set, settings.sizes)).filter((bin) => bin.length > 1)
  const large = bins.filter((bin) => bytesOf(bin) >= settings.sizes.min)
  const others = files.length - large.flat().length
  const wanted = bins.filter((bin) => large.includes(bin) || !canEncode || bin.length === others)
  const added = await joinAll(context, wanted)
  const copied = new Set(wanted.flat().map(({ scanned }) => scanned))
  return { added, rest: files.filter((file) => !copied.has(file)) }
}

async function readInputs({ table, signal }: EncodeContext, files: readonly ScanFile[]): Promise<Input[]> {
  const inputs: Input[] = []
  const { storage } = table
  await forEachLimited(files, parallelFooters, async (scanned, index) => {
    signal?.throwIfAborted()
    const { filePath: location, fileSizeInBytes: size } = scanned.file
    const read = (range: { offset: number; length: number }) => storage.read(location, range, { signal })
    try {
      inputs[index] = { footer: await readWholeFooter({ location, size, read }), entry: scanned, scanned }
    } catch (error) {
      // Whoever encodes it says what is wrong with it.
      if (!(error instanceof IcebergError) || error.code !== 'parquet_invalid') throw error
    }
  })
  return inputs.filter((input) => input !== undefined)
}

/** Files in their order, as many together as make a file of the target size. None is larger than is allowed. */
function binsOf(inputs: readonly Input[], { target, max }: SizeLimits): Input[][] {
  const bins: Input[][] = []
  for (const input of inputs) {
    const last = bins.at(-1)
    const bytes = last === undefined ? 0 : bytesOf(last)
    const fits = bytes < target && bytes + input.scanned.file.fileSizeInBytes <= max
    if (last !== undefined && fits) last.push(input)
    else bins.push([input])
  }
  const [before, last] = bins.slice(-2)
  // One file that is left over goes with those before it if they stay small enough.
  if (before !== undefined && last?.length === 1 && bytesOf(before) + bytesOf(last) <= max) {
    before.push(...last)
    bins.pop()
  }
  return bins
}

function bytesOf(inputs: readonly Input[]): number {
  return inputs.reduce((sum, { scanned }) => sum + scanned.file.fileSizeInBytes, 0)
}

async function joinAll(context: EncodeContext, bins: readonly Input[][]): Promise<ContentFile[]> {
  const written: ContentFile[] = []
  try {
    for (const bin of bins) {
      const file = await join(context, bin)
      written.push(file)
      context.onWritten?.(file.fileSizeInBytes, bytesOf(bin))
    }
    return written
  } catch (error) {
    await removeFiles(context.table, written)
    throw error
  }
}

/** The proof is by chunk: what was copied is read back and compared with what was read. */
async function join({ table, settings, signal }: EncodeContext, inputs: readonly Input[]): Promise<ContentFile> {
  const { metadata, storage } = table
  const specId = settings.outputSpecId
  const partition = inputs[0]?.scanned.file.partition ?? []
  const folders = partitionPath(partitionSpecOf(metadata, specId), partitionTypesOf(metadata, specId), partition)
  const joined = await joinFiles({
    inputs,
    output: newDataLocation(metadata, folders),
    storage,
    schema: schemaOf(metadata),
    sortOrders: metadata.sortOrders,
    lineage: metadata.formatVersion >= 3,
    readBack: settings.options.proof === 'checksum',
    ...(signal !== undefined && { signal }),
  })
  const file: ContentFile = {
    content: 'data',
    filePath: joined.location,
    fileFormat: 'parquet',
    specId,
    partition,
    recordCount: joined.recordCount,
    fileSizeInBytes: joined.fileSizeInBytes,
    splitOffsets: joined.splitOffsets,
    sortOrderId: joined.sortOrderId,
    columnSizes: joined.columnSizes,
    valueCounts: joined.valueCounts,
    nullValueCounts: joined.nullValueCounts,
    nanValueCounts: joined.nanValueCounts,
    lowerBounds: joined.lowerBounds,
    upperBounds: joined.upperBounds,
  }
  const rows = inputs.reduce((sum, { scanned }) => sum + scanned.file.recordCount, 0)
  if (file.recordCount === rows) return file
  await removeFiles(table, [file])
  throw new IcebergError(
    'proof_failed',
    `${inputs.length} files of ${tableName(table.identifier)} have ${rows} rows, and ${file.recordCount} were copied. Nothing was changed.`,
    { details: { rows, copied: file.recordCount } },
  )
}
