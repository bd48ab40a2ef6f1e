import { IcebergError } from '../errors.ts'
import type { Schema } from '../schema/schema.ts'
import type { Snapshot } from '../metadata/snapshot.ts'
import { findSnapshot, mainBranch, schemaOf, type TableMetadata } from '../metadata/table-metadata.ts'

/** Which state of a table is meant. Nothing: the present of main. At most one may be given. */
export interface SnapshotChoice {
  /** This snapshot, under the schema it was written with. */
  readonly snapshotId?: bigint
  /** The head of a branch, under the table's present schema, or a tag, under the schema of its snapshot. */
  readonly ref?: string
  /** What main was at this time, in milliseconds since 1970, under the schema of its snapshot. */
  readonly asOfMs?: number
  /** Another schema of the table than these. */
  readonly schemaId?: number
}

/** The snapshot that is meant and the schema to read it with; no snapshot when the table is still empty. */
export function chosenSnapshot(
  metadata: TableMetadata,
  choice: SnapshotChoice,
): { snapshot: Snapshot | undefined; schema: Schema } {
  const { snapshotId, ref, asOfMs, schemaId } = choice
  if ([snapshotId, ref, asOfMs].filter((given) => given !== undefined).length > 1) {
    throw new IcebergError('scan_invalid', 'A scan takes one of snapshotId, ref and asOfMs, not several.')
  }
  const isTag = ref !== undefined && metadata.refs.get(ref)?.type === 'tag'
  const snapshot = snapshotOf(metadata, choice)
  const ofSnapshot = snapshotId !== undefined || asOfMs !== undefined || isTag
  const schema = schemaOf(metadata, schemaId ?? (ofSnapshot ? snapshot?.schemaId : undefined))
  return { snapshot, schema }
}

function snapshotOf(metadata: TableMetadata, { snapshotId, ref, asOfMs }: SnapshotChoice): Snapshot | undefined {
  if (snapshotId !== undefined) return present(metadata, snapshotId)
  if (asOfMs !== undefined) return present(metadata, snapshotIdAt(metadata, asOfMs))
  if (ref === undefined || ref === mainBranch) {
    const { currentSnapshotId } = metadata
    return currentSnapshotId === undefined ? undefined : present(metadata, currentSnapshotId)
  }
  const found = metadata.refs.get(ref)
  if (found === undefined) throw wrong(metadata, `has no branch or tag "${ref}"`)
  return present(metadata, found.snapshotId)
}

function snapshotIdAt(metadata: TableMetadata, asOfMs: number): bigint {
  let found: bigint | undefined
  for (const entry of metadata.snapshotLog) if (entry.timestampMs <= asOfMs) found = entry.snapshotId
  if (found === undefined) throw wrong(metadata, `had no snapshot, or has forgotten it, at ${asOfMs}`)
  return found
}

function present(metadata: TableMetadata, snapshotId: bigint): Snapshot {
  const snapshot = findSnapshot(metadata, snapshotId)
  if (snapshot === undefined) throw wrong(metadata, `has no snapshot ${snapshotId}`)
  return snapshot
}

function wrong(metadata: TableMetadata, what: string): IcebergError {
  return new IcebergError('scan_invalid', `The table at ${metadata.location} ${what}.`, {
    details: { location: metadata.location },
  })
}
