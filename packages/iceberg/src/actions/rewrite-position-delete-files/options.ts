import { IcebergError } from '../../errors.ts'
import type { TableMetadata } from '../../metadata/table-metadata.ts'
import { targetFileBytes } from '../../write/file-sizes.ts'

const action = 'rewrite_position_delete_files'
const orders = ['none', 'bytes-asc', 'bytes-desc', 'files-asc', 'files-desc'] as const

/** The options of Spark's procedure, by the names it has for them. Values may be text, as they are there. */
export const rewritePositionDeletesOptions = [
  'target-file-size-bytes',
  'min-file-size-bytes',
  'max-file-size-bytes',
  'min-input-files',
  'max-file-group-size-bytes',
  'max-file-group-input-files',
  'max-concurrent-file-group-rewrites',
  'partial-progress.enabled',
  'partial-progress.max-commits',
  'rewrite-all',
  'rewrite-job-order',
] as const

export type RewritePositionDeletesOption = (typeof rewritePositionDeletesOptions)[number]
export type RewritePositionDeletesOptions = Readonly<
  Partial<Record<RewritePositionDeletesOption, string | number | boolean>>
>

/** The options, checked, with their defaults. */
export interface RewritePositionDeletesSettings {
  readonly targetBytes: number
  readonly minBytes: number
  readonly maxBytes: number
  readonly minInputFiles: number
  readonly maxGroupBytes: number
  readonly maxGroupFiles: number
  readonly concurrency: number
  readonly partialProgress: boolean
  readonly maxCommits: number
  readonly rewriteAll: boolean
  readonly jobOrder: (typeof orders)[number]
  /** Of the table: whether a delete file is for one data file, or for a partition. */
  readonly granularity: 'file' | 'partition'
}

export function settingsOf(
  metadata: TableMetadata,
  options: RewritePositionDeletesOptions,
): RewritePositionDeletesSettings {
  for (const name of Object.keys(options)) {
    if ((rewritePositionDeletesOptions as readonly string[]).includes(name)) continue
    throw invalid(`${action} has no option "${name}". Known are ${rewritePositionDeletesOptions.join(', ')}.`)
  }
  const integer = (name: RewritePositionDeletesOption, otherwise: number, min = 1): number => {
    const given = options[name]
    if (given === undefined) return otherwise
    const value = Number(given)
    if (String(given).trim() !== '' && value >= min && Math.floor(value) === value) return value
    throw invalid(`The option ${name} of ${action} is "${given}"; it must be a whole number, at least ${min}.`)
  }
  const flag = (name: RewritePositionDeletesOption): boolean => {
    const given = String(options[name] ?? false).toLowerCase()
    if (given === 'true' || given === 'false') return given === 'true'
    throw invalid(`The option ${name} of ${action} is "${given}"; it must be true or false.`)
  }
  const targetBytes = integer('target-file-size-bytes', targetFileBytes(metadata, 'position-deletes'))
  const minBytes = integer('min-file-size-bytes', Math.floor(targetBytes * 0.75), 0)
  const maxBytes = integer('max-file-size-bytes', Math.floor(targetBytes * 1.8))
  if (minBytes >= targetBytes || targetBytes >= maxBytes) {
    throw invalid(
      `target-file-size-bytes (${targetBytes}) of ${action} must be between min-file-size-bytes (${minBytes}) and ` +
        `max-file-size-bytes (${maxBytes}): else new files would be rewritten again.`,
    )
  }
  const jobOrder = orders.find((order) => order === String(options['rewrite-job-order'] ?? 'none').toLowerCase())
  if (jobOrder === undefined)
    throw invalid(`The option rewrite-job-order of ${action} must be one of ${orders.join(', ')}.`)
  return {
    targetBytes,
    minBytes,
    maxBytes,
    minInputFiles: integer('min-input-files', 5),
    maxGroupBytes: integer('max-file-group-size-bytes', 100 * 1024 ** 3),
    maxGroupFiles: integer('max-file-group-input-files', Number.MAX_SAFE_INTEGER),
    concurrency: integer('max-concurrent-file-group-rewrites', 5),
    partialProgress: flag('partial-progress.enabled'),
    maxCommits: integer('partial-progress.max-commits', 10),
    rewriteAll: flag('rewrite-all'),
    jobOrder,
    granularity: granularityOf(metadata),
  }
}

function granularityOf({ properties, location }: TableMetadata): 'file' | 'partition' {
  const given = (properties['write.delete.granularity'] ?? 'partition').toLowerCase()
  if (given === 'file' || given === 'partition') return given
  throw new IcebergError(
    'metadata_invalid',
    `write.delete.granularity of the table at ${location} is "${given}"; it must be file or partition.`,
  )
}

function invalid(message: string): IcebergError {
  return new IcebergError('value_invalid', message)
}
