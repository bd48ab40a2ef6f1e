import type { LoadedTable } from '../../catalogs/catalog.ts'
import { partitionKey } from '../../manifests/partition-key.ts'
import { partitionPath } from '../../manifests/partition-path.ts'
import { currentSnapshot } from '../../metadata/table-metadata.ts'
import { planContext, planFiles, type PlanContext, type ScanFile } from '../../scan/plan.ts'
import { plannedTable, type PlannedTable } from '../action.ts'
import { fileReason, groupReason, packed, type Candidate, type GroupReason } from './candidates.ts'
import { rewriteSettings, type RewriteDataFilesRequest, type RewriteSettings } from './options.ts'
import { expectedOutputFiles, splitBytes } from './sizes.ts'
import { copyObstacle, howOf, type How, type HowReason } from './copyable.ts'
import { unsupportedColumns } from './unsupported-columns.ts'
import { YoungPartitions } from './young-partitions.ts'

/** Why a file is not rewritten. */
export type LeftOutReason =
  'well-as-it-is' | 'group-too-small' | 'max-files-to-rewrite' | 'young-partition' | 'not-parquet' | 'unsupported-type'

export interface LeftOut {
  readonly why: LeftOutReason
  readonly files: number
  readonly bytes: number
}

export interface PlannedFile {
  readonly path: string
  readonly bytes: number
  readonly rows: number
}

/** Files that are rewritten together. */
export interface RewriteGroup {
  readonly number: number
  /** As folders, `day=2026-01-02`; undefined of files of older specs, which are partitioned anew. */
  readonly partition?: string
  readonly why: GroupReason
  readonly files: readonly PlannedFile[]
  readonly bytes: number
  readonly rows: number
  readonly expectedFiles: number
  /** Bytes of the input that each new file takes. */
  readonly splitBytes: number
  /** `copy`: those of its files that can be are joined by copying their bytes. */
  readonly how: How
  readonly howReason: HowReason
}

/** What a rewrite will do. Plain data, which prints as JSON. */
export interface RewriteDataFilesPlan {
  readonly action: 'rewrite_data_files'
  readonly table: PlannedTable
  readonly settings: RewriteSettings
  /** The filter, for people: it is not needed any more. */
  readonly where?: string
  readonly groups: readonly RewriteGroup[]
  readonly files: number
  readonly bytes: number
  readonly expectedFiles: number
  readonly leftOut: readonly LeftOut[]
  /** Why columns cannot be read and written exactly: only files that can be copied are planned then. */
  readonly unsupported?: string
}

interface PlanFile extends PlannedFile, Candidate {
  readonly obstacle: ReturnType<typeof copyObstacle>
}

interface Partition {
  readonly key: string
  readonly text: string | undefined
  readonly files: PlanFile[]
}

/** Finds the files of a branch that are worth rewriting, and groups them. Reads manifests only. */
export async function planRewriteDataFiles(
  table: LoadedTable,
  request: RewriteDataFilesRequest = {},
): Promise<RewriteDataFilesPlan> {
  const { metadata } = table
  const settings = rewriteSettings(metadata, request)
  const { branch } = settings
  const head = currentSnapshot(metadata, branch)
  const scan = { ref: branch, ...(request.where !== undefined && { filter: request.where }) }
  const context = planContext(metadata, scan)
  const leftOut = new LeftOutCounts()
  const young = new YoungPartitions(metadata, settings.options['min-partition-age-minutes'])
  const partitions = new Map<string, Partition>()
  for await (const batch of planFiles(table, scan)) {
    for (const scanned of batch) collect(scanned, settings, context, { partitions, young, leftOut })
  }
  const unsupported = unsupportedColumns(table)?.message
  const groups = [...partitions.values()].flatMap((partition) =>
    young.has(partition.key)
      ? leftOut.all('young-partition', partition.files)
      : groupsOf(partition, settings, unsupported !== undefined, leftOut),
  )
  const wanted = inJobOrder(withinMaxFiles(groups, settings, leftOut), settings)
  return {
    action: 'rewrite_data_files',
    table: plannedTable(table, head?.snapshotId),
    settings,
    ...(request.where !== undefined && { where: JSON.stringify(request.where, textOfValue) }),
    groups: wanted.map((group, index) => ({ ...group, number: index + 1 })),
    files: sum(wanted, (group) => group.files.length),
    bytes: sum(wanted, (group) => group.bytes),
    expectedFiles: sum(wanted, (group) => group.expectedFiles),
    leftOut: leftOut.list,
    ...(unsupported !== undefined && { unsupported }),
  }
}

function collect(
  scanned: ScanFile,
  settings: RewriteSettings,
  context: PlanContext,
  to: { partitions: Map<string, Partition>; young: YoungPartitions; leftOut: LeftOutCounts },
): void {
  const { file } = scanned
  // Files of other specs may hold rows of many partitions: they go together, whatever theirs were. As in Spark they go
  // with those that have no value in any field of the present spec: with all of them where it has no field.
  const isCurrent = file.specId === settings.groupSpecId
  const { fields } = context.specOf(settings.groupSpecId).spec
  const key = partitionKey(settings.groupSpecId, isCurrent ? file.partition : fields.map(() => null))
  to.young.note(key, scanned)
  const why = fileReason(scanned, settings)
  if (file.fileFormat !== 'parquet' || why === undefined) {
    to.leftOut.add(why === undefined ? 'well-as-it-is' : 'not-parquet', file.fileSizeInBytes)
    return
  }
  const { spec, types } = context.specOf(file.specId)
  const partition = to.partitions.get(key) ?? {
    key,
    text: isCurrent ? partitionPath(spec, types, file.partition) : undefined,
    files: [],
  }
  to.partitions.set(key, partition)
  partition.files.push({
    path: file.filePath,
    bytes: file.fileSizeInBytes,
    rows: file.recordCount,
    why,
    obstacle: copyObstacle(scanned, settings),
  })
}

type Planned = Omit<RewriteGroup, 'number'>

function groupsOf(
  { text, files: all }: Partition,
  settings: RewriteSettings,
  isUnsupported: boolean,
  leftOut: LeftOutCounts,
): Planned[] {
  const { sizes, options } = settings
  const limits = { maxBytes: options['max-file-group-size-bytes'], maxFiles: options['max-file-group-input-files'] }
  const isCopyable = ({ obstacle }: PlanFile): boolean => obstacle === undefined
  const files = isUnsupported ? all.filter(isCopyable) : all
  if (isUnsupported)
    leftOut.all(
      'unsupported-type',
      all.filter((file) => !isCopyable(file)),
    )
  return packed(files, limits).flatMap((group): Planned[] => {
    const why = groupReason(group, settings)
    if (why === undefined) return leftOut.all('group-too-small', group)
    const bytes = sum(group, (file) => file.bytes)
    const obstacles = group.map(({ obstacle }) => obstacle)
    const { how, howReason } = howOf(obstacles, settings, text !== undefined)
    if (isUnsupported && how === 'encode') return leftOut.all('unsupported-type', group)
    return [
      {
        ...(text !== undefined && { partition: text }),
        why,
        files: group.map(({ path, bytes: size, rows }) => ({ path, bytes: size, rows })),
        bytes,
        rows: sum(group, (file) => file.rows),
        expectedFiles: expectedOutputFiles(bytes, sizes),
        splitBytes: splitBytes(bytes, sizes),
        how,
        howReason,
      },
    ]
  })
}

/** Groups until there are so many files; of the last one only as many as are allowed. */
function withinMaxFiles(groups: readonly Planned[], { options }: RewriteSettings, leftOut: LeftOutCounts): Planned[] {
  let left = options['max-files-to-rewrite'] ?? Number.POSITIVE_INFINITY
  return groups.flatMap((group) => {
    const files = group.files.slice(0, left)
    left -= files.length
    leftOut.all('max-files-to-rewrite', group.files.slice(files.length))
    if (files.length === group.files.length) return [group]
    // As in Spark, what is expected of the group stays as it was.
    return files.length === 0
      ? []
      : [{ ...group, files, bytes: sum(files, (file) => file.bytes), rows: sum(files, (file) => file.rows) }]
  })
}

function inJobOrder(groups: readonly Planned[], { options }: RewriteSettings): Planned[] {
  const order = options['rewrite-job-order']
  const by = (group: Planned): number => (order.startsWith('bytes') ? group.bytes : group.files.length)
  const sign = order.endsWith('desc') ? -1 : 1
  return order === 'none' ? [...groups] : groups.toSorted((a, b) => sign * (by(a) - by(b)))
}

class LeftOutCounts {
  readonly #counts = new Map<LeftOutReason, { files: number; bytes: number }>()

  add(why: LeftOutReason, bytes: number): void {
    const count = this.#counts.get(why) ?? { files: 0, bytes: 0 }
    this.#counts.set(why, { files: count.files + 1, bytes: count.bytes + bytes })
  }

  /** Counts files, and stands for the groups that are not made of them. */
  all(why: LeftOutReason, files: readonly PlannedFile[]): [] {
    for (const file of files) this.add(why, file.bytes)
    return []
  }

  get list(): LeftOut[] {
    return [...this.#counts].map(([why, count]) => ({ why, ...count }))
  }
}

function sum<T>(items: readonly T[], of: (item: T) => number): number {
  return items.reduce((total, item) => total + of(item), 0)
}

function textOfValue(_: string, value: unknown): unknown {
  if (value instanceof Uint8Array) return Buffer.from(value).toString('hex')
  return typeof value === 'bigint' ? String(value) : value
}
