import type { ContentFile } from '../manifests/content-file.ts'
import type { ManifestFile } from '../manifests/manifest-file.ts'
import { partitionType } from '../manifests/partition-type.ts'
import { isUnpartitioned } from '../schema/partition-spec.ts'
import type { Schema } from '../schema/schema.ts'
import type { Snapshot } from '../metadata/snapshot.ts'
import { partitionSpecOf, type TableMetadata } from '../metadata/table-metadata.ts'
import { manifestsOf, type ScannedTable } from '../snapshot/manifests-of.ts'
import type { AppliedDeletes } from '../snapshot/delete.ts'
import { DeleteIndex } from '../snapshot/delete-index.ts'
import { bindFilter, type BoundFilter, type Filter } from './filter.ts'
import { fileMayMatch, manifestMayMatch, partitionMayMatch, type TypedSpec } from './prune.ts'
import { readManifests, type ReadManifestsOptions } from '../snapshot/read-manifests.ts'
import { chosenSnapshot, type SnapshotChoice } from '../snapshot/snapshot-of.ts'

export interface PlanOptions extends SnapshotChoice {
  /** Leaves out files that can have no row that is wanted. Files that may have some are given whole. */
  readonly filter?: Filter
  /** Manifests that are fetched at the same time, of 16 MiB together. Default 8. */
  readonly concurrency?: number
  /** Whether files come with counts, sizes and bounds by column. They cost time. Default: false. */
  readonly statistics?: boolean
  readonly signal?: AbortSignal
}

/** A data file of a snapshot, with everything that deletes rows of it. */
export interface ScanFile {
  readonly file: ContentFile
  /** The data sequence number, by which deletes apply. */
  readonly sequenceNumber: bigint
  /** When the file itself was added: deletes from before it cannot name it. */
  readonly fileSequenceNumber: bigint | undefined
  readonly snapshotId: bigint
  readonly deletes: AppliedDeletes
}

/** What a plan is made with. */
export interface PlanContext {
  readonly snapshot: Snapshot | undefined
  readonly schema: Schema
  readonly filter: BoundFilter | undefined
  /** The specs of the table by id, with the types of their values. */
  specOf(specId: number): TypedSpec
}

/**
 * The data files of a snapshot with the deletes that apply to them, some at a time: the deletes are all read first, the
 * data files as the caller takes them, so that memory does not grow with their number.
 */
export async function* planFiles(table: ScannedTable, options: PlanOptions = {}): AsyncGenerator<ScanFile[]> {
  yield* planWith(table, options, planContext(table.metadata, options))
}

/** The same, with a context that the caller has already. */
export async function* planWith(
  table: ScannedTable,
  options: PlanOptions,
  context: PlanContext,
): AsyncGenerator<ScanFile[]> {
  if (context.snapshot === undefined) return
  const manifests = await manifestsOf(table, context.snapshot)
  const { filter } = context
  const wanted = manifests.filter(
    (manifest) =>
      hasLiveFiles(manifest) &&
      (filter === undefined || manifestMayMatch(filter, manifest, context.specOf(manifest.partitionSpecId))),
  )
  const deletes = await readDeletes(table, wanted, options, context)
  const data = wanted.filter(({ content }) => content === 'data')
  const statistics = filter !== undefined || options.statistics === true
  for await (const { entries } of readManifests(table.storage, data, reading(options, context, statistics))) {
    const files: ScanFile[] = []
    for (const { file, sequenceNumber, fileSequenceNumber, snapshotId } of entries) {
      if (filter !== undefined && !fileMayMatch(filter, file, context.specOf(file.specId))) continue
      files.push({
        file,
        sequenceNumber,
        fileSequenceNumber,
        snapshotId,
        deletes: deletes.of(file, sequenceNumber),
      })
    }
    if (files.length > 0) yield files
  }
}

export function planContext(metadata: TableMetadata, options: PlanOptions): PlanContext {
  const { snapshot, schema } = chosenSnapshot(metadata, options)
  const filter = options.filter === undefined ? undefined : bindFilter(options.filter, schema)
  // The types are those of the schema that is read; of a column that it does not have, the newest that did.
  const schemas = [schema, ...metadata.schemas.toSorted((a, b) => b.schemaId - a.schemaId)]
  const typed = new Map<number, TypedSpec>()
  const specOf = (specId: number): TypedSpec => {
    const known = typed.get(specId)
    if (known !== undefined) return known
    const spec = partitionSpecOf(metadata, specId)
    const made = { spec, types: partitionType(spec, schemas) }
    typed.set(specId, made)
    return made
  }
  return { snapshot, schema, filter, specOf }
}

function hasLiveFiles({ addedFilesCount, existingFilesCount }: ManifestFile): boolean {
  return addedFilesCount !== 0 || existingFilesCount !== 0
}

function reading(
  { concurrency, signal }: PlanOptions,
  context: PlanContext,
  statistics: boolean,
): ReadManifestsOptions {
  return { concurrency, signal, statistics, partitionOf: (specId) => context.specOf(specId).types }
}

async function readDeletes(
  table: ScannedTable,
  manifests: readonly ManifestFile[],
  options: PlanOptions,
  context: PlanContext,
): Promise<DeleteIndex> {
  const index = new DeleteIndex()
  const { filter } = context
  const ofDeletes = manifests.filter(({ content }) => content === 'deletes')
  // Bounds tell which data file position deletes are for.
  for await (const { entries } of readManifests(table.storage, ofDeletes, reading(options, context, true))) {
    for (const entry of entries) {
      const spec = context.specOf(entry.file.specId)
      const everywhere = isUnpartitioned(spec.spec)
      if (filter === undefined || everywhere || partitionMayMatch(filter, entry.file, spec))
        index.add(entry, everywhere)
    }
  }
  return index
}
