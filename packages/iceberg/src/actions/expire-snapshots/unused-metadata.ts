import type { LoadedTable } from '../../catalogs/catalog.ts'
import { fieldsById, type Schema } from '../../schema/schema.ts'
import type { Snapshot } from '../../metadata/snapshot.ts'
import type { TableMetadata } from '../../metadata/table-metadata.ts'
import { ReachableWalk } from '../../snapshot/reachable.ts'

/** Schemas and partition specs that no snapshot needs. */
export interface UnusedMetadata {
  readonly schemaIds: readonly number[]
  readonly specIds: readonly number[]
}

/** What is unused once these snapshots are gone. */
export async function unusedMetadata(
  { metadata, storage }: LoadedTable,
  expiring: ReadonlySet<bigint>,
  signal: AbortSignal | undefined,
): Promise<UnusedMetadata> {
  const walk = new ReachableWalk(storage, { signal })
  const staying = metadata.snapshots.filter(({ snapshotId }) => !expiring.has(snapshotId))
  await walk.readLists(staying)
  return unusedBy(metadata, expiring, walk.specIds)
}

/** The same, where the specs of the manifests of all other snapshots are known. */
export function unusedBy(
  metadata: TableMetadata,
  expiring: ReadonlySet<bigint>,
  usedSpecIds: ReadonlySet<number>,
): UnusedMetadata {
  const staying = metadata.snapshots.filter(({ snapshotId }) => !expiring.has(snapshotId))
  // Old snapshots of v1 do not say which spec their manifests have.
  const knowsSpecs = staying.every(({ manifestList }) => manifestList !== undefined)
  const specIds = knowsSpecs
    ? metadata.partitionSpecs
        .map(({ specId }) => specId)
        .filter((specId) => specId !== metadata.defaultSpecId && !usedSpecIds.has(specId))
    : []
  const used = new Set([metadata.currentSchemaId, ...staying.flatMap(({ schemaId }) => schemaId ?? [])])
  for (const schemaId of sourcesOf(metadata, new Set(specIds), used)) used.add(schemaId)
  if (mayHaveEqualityDeletes(metadata, staying)) for (const id of withDroppedColumns(metadata, used)) used.add(id)
  const schemaIds = metadata.schemas.map(({ schemaId }) => schemaId).filter((schemaId) => !used.has(schemaId))
  return { schemaIds, specIds }
}

/** A spec that stays may partition by a column that was dropped: the newest schema that has it says its type. */
function sourcesOf(metadata: TableMetadata, removed: ReadonlySet<number>, used: ReadonlySet<number>): number[] {
  const newestFirst = metadata.schemas.toSorted((a, b) => b.schemaId - a.schemaId)
  const columns = new Map(newestFirst.map((schema) => [schema.schemaId, fieldsById(schema)]))
  const needed = metadata.partitionSpecs
    .filter(({ specId }) => !removed.has(specId))
    .flatMap(({ fields }) => fields.map(({ sourceId }) => sourceId))
  const have = (schemaId: number, sourceId: number): boolean => columns.get(schemaId)?.has(sourceId) === true
  return needed.flatMap((sourceId) => {
    if ([...used].some((schemaId) => have(schemaId, sourceId))) return []
    return newestFirst.find(({ schemaId }) => have(schemaId, sourceId))?.schemaId ?? []
  })
}

function mayHaveEqualityDeletes({ formatVersion }: TableMetadata, staying: readonly Snapshot[]): boolean {
  return formatVersion > 1 && staying.some(({ summary }) => summary?.['total-equality-deletes'] !== '0')
}

/** An equality delete may be by a column that was dropped: the newest schema that has a column says its type. */
function withDroppedColumns(metadata: TableMetadata, used: ReadonlySet<number>): number[] {
  const newestFirst = metadata.schemas.toSorted((a, b) => b.schemaId - a.schemaId)
  const known = new Set(newestFirst.filter(({ schemaId }) => used.has(schemaId)).flatMap(fieldIds))
  return newestFirst.flatMap((schema) => {
    const ids = fieldIds(schema)
    const isNeeded = ids.some((id) => !known.has(id))
    for (const id of ids) known.add(id)
    return isNeeded ? [schema.schemaId] : []
  })
}

function fieldIds(schema: Schema): number[] {
  return [...fieldsById(schema).keys()]
}
