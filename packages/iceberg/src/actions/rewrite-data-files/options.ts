import { IcebergError } from '../../errors.ts'
import { mainBranch, type TableMetadata } from '../../metadata/table-metadata.ts'
import type { Filter } from '../../scan/filter.ts'
import { targetFileBytes } from '../../write/file-sizes.ts'
import {
  booleanOption,
  choiceOption,
  integerOption,
  numberOption,
  readOptions,
  type GivenOptions,
  type OptionValues,
} from '../option-table.ts'
import { parseSortOrder, type RequestedOrder } from './sort-order-text.ts'

const gib = 1024 ** 3
const maxInt = 2147483647

/** Every option of `rewrite_data_files`: those of Spark's procedure, and at the end our own. */
export const rewriteDataFilesOptions = {
  'target-file-size-bytes': integerOption('How large new files are to be.', {
    min: 1,
    default: undefined,
    defaultText: 'write.target-file-size-bytes of the table (512 MiB)',
  }),
  'min-file-size-bytes': integerOption('Smaller files are rewritten.', {
    min: 0,
    default: undefined,
    defaultText: '75 % of the target',
  }),
  'max-file-size-bytes': integerOption('Larger files are rewritten.', {
    min: 1,
    default: undefined,
    defaultText: '180 % of the target',
  }),
  'min-input-files': integerOption('A group of so many files is rewritten, however small it is.', {
    min: 1,
    max: maxInt,
    default: 5,
  }),
  'max-file-group-size-bytes': integerOption('Files of one partition are rewritten in groups of at most this size.', {
    min: 1,
    default: 100 * gib,
  }),
  'max-file-group-input-files': integerOption('Files of one group at most.', {
    min: 1,
    default: Number.MAX_SAFE_INTEGER,
    defaultText: 'no limit',
  }),
  'rewrite-all': booleanOption('Rewrites every file, whatever its size.', false),
  'delete-file-threshold': integerOption('A data file with so many delete files is rewritten.', {
    min: 0,
    default: maxInt,
  }),
  'delete-ratio-threshold': numberOption(
    'A data file of which this share of rows is known to be deleted is rewritten.',
    { above: 0, most: 1, default: 0.3 },
  ),
  'max-concurrent-file-group-rewrites': integerOption(
    'Groups that are rewritten at the same time; fewer when the memory budget is small.',
    { min: 1, max: maxInt, default: 5 },
  ),
  'partial-progress.enabled': booleanOption('Commits groups as they are done, not all at the end.', false),
  'partial-progress.max-commits': integerOption('Commits at most, with partial progress.', {
    min: 1,
    max: maxInt,
    default: 10,
  }),
  'partial-progress.max-failed-commits': integerOption('More failed commits than this fail the action.', {
    min: 0,
    max: maxInt,
    default: undefined,
    defaultText: 'partial-progress.max-commits',
  }),
  'use-starting-sequence-number': booleanOption(
    'New files keep the sequence number of the snapshot they were made from, so that equality deletes committed meanwhile apply to them.',
    true,
  ),
  'rewrite-job-order': choiceOption(
    'Which groups are rewritten first.',
    ['none', 'bytes-asc', 'bytes-desc', 'files-asc', 'files-desc'],
    'none',
  ),
  'output-spec-id': integerOption('The partition spec of new files.', {
    min: 0,
    max: maxInt,
    default: undefined,
    defaultText: 'the default spec of the table',
  }),
  'remove-dangling-deletes': booleanOption(
    'Removes delete files that can match nothing any more, in a second commit.',
    false,
  ),
  'max-files-to-rewrite': integerOption('Files of the whole plan at most.', {
    min: 1,
    max: maxInt,
    default: undefined,
    defaultText: 'no limit',
  }),
  'compression-factor': numberOption('Accepted for Spark; how large new files become is measured here.', {
    above: 0,
    most: Number.MAX_VALUE,
    default: 1,
  }),
  'shuffle-partitions-per-file': integerOption('Accepted for Spark; nothing is shuffled here.', {
    min: 1,
    max: maxInt,
    default: 1,
  }),
  'var-length-contribution': integerOption('Z-order: bytes of a text or binary that count, 8 at most.', {
    min: 1,
    max: 1024,
    default: 8,
  }),
  'max-output-size': integerOption('Z-order: bytes of the interleaved value that rows are sorted by.', {
    min: 1,
    max: maxInt,
    default: maxInt,
  }),
  'min-partition-age-minutes': integerOption(
    'Leaves out partitions that writers have committed to within so many minutes.',
    { min: 0, max: maxInt, default: 0 },
  ),
  proof: choiceOption(
    'What is compared before the commit: row counts and a checksum of all values, or row counts alone.',
    ['checksum', 'count'],
    'checksum',
  ),
  'memory-budget-bytes': integerOption('Memory of DuckDB for all groups together; what needs more spills to disk.', {
    min: 64 * 1024 ** 2,
    default: gib,
  }),
  'copy-min-row-group-bytes': integerOption(
    'Files whose row groups have so many bytes on average, and no deletes, are joined by copying their bytes.',
    { min: 1, default: 16 * 1024 ** 2 },
  ),
  'staging-budget-bytes': integerOption(
    'Disk for copies of remote files, for all groups together. A file that is larger is not rewritten.',
    { min: 16 * 1024, default: 10 * gib },
  ),
} as const

export type RewriteOptionValues = OptionValues<typeof rewriteDataFilesOptions>

/** What `planRewriteDataFiles` is asked for. */
export interface RewriteDataFilesRequest {
  /** Default: binpack, or sort when there is a sort order. `zorder` needs the columns in `sortOrder`. */
  readonly strategy?: 'binpack' | 'sort' | 'zorder'
  /** As in Spark: `a DESC NULLS LAST, bucket(16, b)`, or `zorder(a, b)`. Default: the table's own order. */
  readonly sortOrder?: string
  /** Files that may have such rows are rewritten, whole. */
  readonly where?: Filter
  /** Default: main. */
  readonly branch?: string
  readonly options?: GivenOptions
}

/** How large files are, and are to be. */
export interface SizeLimits {
  readonly target: number
  readonly min: number
  readonly max: number
}

/** A request with everything checked and filled in. Plain data, but for the filter. */
export interface RewriteSettings {
  readonly strategy: 'binpack' | 'sort' | 'zorder'
  readonly order: RequestedOrder | undefined
  readonly branch: string
  readonly outputSpecId: number
  /** The table's default spec: files of it are grouped by their partitions. */
  readonly groupSpecId: number
  readonly sizes: SizeLimits
  readonly options: RewriteOptionValues
}

/** Checks a request against the table it is for. */
export function rewriteSettings(metadata: TableMetadata, request: RewriteDataFilesRequest): RewriteSettings {
  const options = readOptions('rewrite_data_files', rewriteDataFilesOptions, request.options ?? {})
  const { strategy, order } = orderOf(metadata, request)
  const outputSpecId = options['output-spec-id'] ?? metadata.defaultSpecId
  if (metadata.partitionSpecs.every(({ specId }) => specId !== outputSpecId)) {
    throw invalid(`The table at ${metadata.location} has no partition spec ${outputSpecId} to write files of.`)
  }
  return {
    strategy,
    order,
    branch: request.branch ?? mainBranch,
    outputSpecId,
    groupSpecId: metadata.defaultSpecId,
    sizes: sizesOf(metadata, options),
    options,
  }
}

function orderOf(
  metadata: TableMetadata,
  { strategy, sortOrder }: RewriteDataFilesRequest,
): Pick<RewriteSettings, 'strategy' | 'order'> {
  if (strategy === 'binpack' && sortOrder !== undefined) {
    throw invalid('Bin-packing takes no sort order: leave it out, or use the strategy sort.')
  }
  if (sortOrder === undefined && (strategy === undefined || strategy === 'binpack')) {
    return { strategy: 'binpack', order: undefined }
  }
  const order = parseSortOrder(metadata, sortOrder)
  if (strategy === 'zorder' && order.kind !== 'zorder')
    throw invalid('The strategy zorder needs zorder(…) as its order.')
  return { strategy: order.kind === 'zorder' ? 'zorder' : 'sort', order }
}

function sizesOf(metadata: TableMetadata, options: RewriteOptionValues): SizeLimits {
  const target = options['target-file-size-bytes'] ?? targetFileBytes(metadata, 'data')
  const min = options['min-file-size-bytes'] ?? Math.floor(target * 0.75)
  const max = options['max-file-size-bytes'] ?? Math.floor(target * 1.8)
  if (target <= min) {
    throw invalid(
      `target-file-size-bytes (${target}) must be above min-file-size-bytes (${min}): else every new file is too small.`,
    )
  }
  if (target >= max) {
    throw invalid(
      `target-file-size-bytes (${target}) must be below max-file-size-bytes (${max}): else every new file is too large.`,
    )
  }
  return { target, min, max }
}

function invalid(message: string): IcebergError {
  return new IcebergError('action_refused', message)
}
