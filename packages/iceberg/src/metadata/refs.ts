import { IcebergError } from '../errors.ts'
import { isAncestor } from './ancestry.ts'
import type { Snapshot, SnapshotRef } from './snapshot.ts'
import { findSnapshot, mainBranch, type TableMetadata } from './table-metadata.ts'
import type { MetadataRequirement, MetadataUpdate } from './update.ts'

/** How long a branch or tag, and the snapshots of a branch, are kept; what is left out is the table's default. */
export interface Retention {
  /** Branches only. */
  readonly minSnapshotsToKeep?: number
  /** Branches only. */
  readonly maxSnapshotAgeMs?: bigint
  /** Never applies to main. */
  readonly maxRefAgeMs?: bigint
}

export interface Changes {
  readonly requirements: readonly MetadataRequirement[]
  readonly updates: readonly MetadataUpdate[]
}

/** What every change to a table demands: that it is still the same table. */
export function sameTable(metadata: TableMetadata): MetadataRequirement[] {
  return metadata.tableUuid === undefined ? [] : [{ type: 'assert-table-uuid', uuid: metadata.tableUuid }]
}

function sameRef(metadata: TableMetadata, ref: string): MetadataRequirement {
  return { type: 'assert-ref-snapshot-id', ref, snapshotId: metadata.refs.get(ref)?.snapshotId ?? null }
}

/** Refuses a branch that is not there; main of an empty table will be. */
export function assertBranch(metadata: TableMetadata, branch: string): void {
  const ref = metadata.refs.get(branch)
  if (ref?.type === 'branch' || (ref === undefined && branch === mainBranch)) return
  const problem = ref === undefined ? 'has no branch' : 'has a tag, not a branch,'
  throw invalid(metadata, `${problem} "${branch}": create it first`)
}

/** Adds a snapshot as the new head of a branch, whose retention stays as it is. */
export function snapshotCommit(metadata: TableMetadata, branch: string, snapshot: Snapshot): Changes {
  const ref: SnapshotRef = { ...(metadata.refs.get(branch) ?? { type: 'branch' }), snapshotId: snapshot.snapshotId }
  return {
    requirements: [...sameTable(metadata), sameRef(metadata, branch)],
    updates: [
      { action: 'add-snapshot', snapshot },
      { action: 'set-snapshot-ref', refName: branch, ref },
    ],
  }
}

/** Makes a branch or tag at a snapshot, by default the head of main. An existing one is replaced only when asked. */
export function setRef(
  metadata: TableMetadata,
  name: string,
  type: 'branch' | 'tag',
  options: Retention & { readonly snapshotId?: bigint; readonly replace?: boolean },
): Changes {
  const { snapshotId = metadata.currentSnapshotId, replace = false, ...retention } = options
  const existing = metadata.refs.get(name)
  if (existing !== undefined && !replace) throw invalid(metadata, `has a ${existing.type} "${name}" already`)
  if (existing !== undefined && existing.type !== type)
    throw invalid(metadata, `has a ${existing.type} of the name "${name}"`)
  if (snapshotId === undefined)
    throw invalid(metadata, `has no snapshot that "${name}" could be at: append something first`)
  assertSnapshot(metadata, snapshotId)
  const ref: SnapshotRef = { ...existing, snapshotId, type, ...retention }
  return {
    requirements: [...sameTable(metadata), sameRef(metadata, name)],
    updates: [{ action: 'set-snapshot-ref', refName: name, ref }],
  }
}

export function dropRef(metadata: TableMetadata, name: string): Changes {
  if (name === mainBranch) throw invalid(metadata, 'cannot lose main')
  if (!metadata.refs.has(name)) throw invalid(metadata, `has no branch or tag "${name}"`)
  return {
    requirements: [...sameTable(metadata), sameRef(metadata, name)],
    updates: [{ action: 'remove-snapshot-ref', refName: name }],
  }
}

/** Moves a branch to any snapshot of the table; `ancestor` demands that it is one of the branch's own past. */
export function moveBranch(metadata: TableMetadata, branch: string, snapshotId: bigint, ancestor: boolean): Changes {
  assertBranch(metadata, branch)
  assertSnapshot(metadata, snapshotId)
  const ref = metadata.refs.get(branch)
  if (ancestor && !isAncestor(metadata, ref?.snapshotId, snapshotId)) {
    throw invalid(metadata, `cannot be rolled back to snapshot ${snapshotId}: it is not in the past of "${branch}"`)
  }
  return {
    requirements: [...sameTable(metadata), sameRef(metadata, branch)],
    updates: [{ action: 'set-snapshot-ref', refName: branch, ref: { ...(ref ?? { type: 'branch' }), snapshotId } }],
  }
}

function assertSnapshot(metadata: TableMetadata, snapshotId: bigint): void {
  if (findSnapshot(metadata, snapshotId) === undefined) throw invalid(metadata, `has no snapshot ${snapshotId}`)
}

function invalid(metadata: TableMetadata, message: string): IcebergError {
  return new IcebergError('ref_invalid', `The table at ${metadata.location} ${message}`)
}
