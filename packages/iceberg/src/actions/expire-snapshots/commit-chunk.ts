import { commitTable, type BuiltCommit } from '../../commit/index.ts'
import { IcebergError } from '../../errors.ts'
import { tableName, type LoadedTable } from '../../catalogs/catalog.ts'
import type { TableMetadata } from '../../metadata/table-metadata.ts'
import type { MetadataRequirement, MetadataUpdate } from '../../metadata/update.ts'
import { commitOptionsOf, type ActionRun } from '../action.ts'
import { retentionSettings } from './options.ts'
import type { ExpireSnapshotsPlan } from './plan.ts'
import { decideRetention } from './retention.ts'
import type { UnusedMetadata } from './unused-metadata.ts'

// One commit of an expiry. Each try decides again, by the settings of the plan, on the table as it is then: what has
// been tagged, branched, rolled back to or written by a stream since is kept. Every ref that is known is asserted, for
// catalogs written in Java drop refs to removed snapshots without a word.
// Limit: of a REST catalog that does so, a tag under a new name that is made between the load and the commit goes along
// with its snapshot; nothing can assert a name that nobody knows. JDBC and file system catalogs refuse it.

export interface Chunk {
  readonly snapshotIds: readonly bigint[]
  /** The last chunk removes schemas and specs; asked at every try, for the snapshots that stay then. */
  readonly unused?: (table: LoadedTable, expiring: ReadonlySet<bigint>) => Promise<UnusedMetadata>
}

export interface CommittedChunk {
  readonly table: LoadedTable
  readonly snapshotIds: readonly bigint[]
  readonly refs: readonly string[]
}

/** A commit that failed: `isCertain` says that nothing was changed by it. */
export class ChunkNotCommitted extends Error {
  readonly isCertain: boolean

  constructor(cause: Error, isCertain: boolean) {
    super(cause.message, { cause })
    this.isCertain = isCertain
  }
}

/** Removes the snapshots of a chunk that may still go; undefined when none may. */
export async function commitChunk(
  plan: ExpireSnapshotsPlan,
  chunk: Chunk,
  run: ActionRun,
): Promise<CommittedChunk | undefined> {
  const { identifier, uuid } = plan.table
  const removals = new Map<BuiltCommit, Omit<CommittedChunk, 'table'>>()
  const build = async (table: LoadedTable): Promise<BuiltCommit | undefined> => {
    const removal = await removalFor(table, plan, chunk)
    if (removal.updates.length === 0) return undefined
    const built = { requirements: removal.requirements, updates: removal.updates, files: [] }
    removals.set(built, removal)
    return built
  }
  const options = commitOptionsOf(run, uuid === '' ? undefined : uuid)
  const outcome = await commitTable(run.catalog, identifier, build, options).catch((error: Error) => {
    throw new ChunkNotCommitted(error, true)
  })
  if (outcome.outcome === 'unknown') throw new ChunkNotCommitted(outcome.error, false)
  if (outcome.outcome === 'applied') {
    const removal = removals.get(outcome.built)
    return { table: outcome.table, snapshotIds: removal?.snapshotIds ?? [], refs: removal?.refs ?? [] }
  }
  if (outcome.why === 'nothing_to_do') return undefined
  const error = outcome.error ?? new IcebergError('commit_conflict', `${tableName(identifier)} was not changed.`)
  throw new ChunkNotCommitted(error, true)
}

async function removalFor(table: LoadedTable, plan: ExpireSnapshotsPlan, chunk: Chunk) {
  const { metadata } = table
  // A ref that is not in the plan, or was moved since, keeps what it holds whatever its age.
  const removableRefs = new Map(plan.removedRefs.map(({ name, snapshotId }) => [name, BigInt(snapshotId)]))
  const retention = decideRetention(metadata, { ...retentionSettings(plan.settings), removableRefs })
  const expirable = new Set(retention.expired.map(({ snapshotId }) => snapshotId))
  const snapshotIds = chunk.snapshotIds.filter((id) => expirable.has(id))
  const refs = retention.removedRefs.map(({ name }) => name)
  const unused = (await chunk.unused?.(table, new Set(snapshotIds))) ?? { schemaIds: [], specIds: [] }
  return {
    snapshotIds,
    refs,
    requirements: requirementsFor(metadata, unused),
    updates: updatesFor(metadata, snapshotIds, refs, unused),
  }
}

function requirementsFor(metadata: TableMetadata, { schemaIds, specIds }: UnusedMetadata): MetadataRequirement[] {
  const { tableUuid, currentSchemaId, defaultSpecId } = metadata
  const requirements: MetadataRequirement[] = []
  if (tableUuid !== undefined) requirements.push({ type: 'assert-table-uuid', uuid: tableUuid })
  for (const [ref, { snapshotId }] of metadata.refs) {
    requirements.push({ type: 'assert-ref-snapshot-id', ref, snapshotId })
  }
  if (schemaIds.length + specIds.length > 0) {
    requirements.push({ type: 'assert-current-schema-id', currentSchemaId })
    requirements.push({ type: 'assert-default-spec-id', defaultSpecId })
  }
  return requirements
}

function updatesFor(
  metadata: TableMetadata,
  snapshotIds: readonly bigint[],
  refs: readonly string[],
  { schemaIds, specIds }: UnusedMetadata,
): MetadataUpdate[] {
  const updates: MetadataUpdate[] = refs.map((refName) => ({ action: 'remove-snapshot-ref', refName }))
  const going = new Set(snapshotIds)
  for (const { snapshotId } of metadata.statistics) {
    if (going.has(snapshotId)) updates.push({ action: 'remove-statistics', snapshotId })
  }
  for (const { snapshotId } of metadata.partitionStatistics) {
    if (going.has(snapshotId)) updates.push({ action: 'remove-partition-statistics', snapshotId })
  }
  if (snapshotIds.length > 0) updates.push({ action: 'remove-snapshots', snapshotIds: inOrder(metadata, going) })
  if (schemaIds.length > 0) updates.push({ action: 'remove-schemas', schemaIds })
  if (specIds.length > 0) updates.push({ action: 'remove-partition-specs', specIds })
  return updates
}

/** In the order of the table's own list, in which many are removed at once. */
function inOrder({ snapshots }: TableMetadata, ids: ReadonlySet<bigint>): bigint[] {
  return snapshots.map(({ snapshotId }) => snapshotId).filter((id) => ids.has(id))
}
