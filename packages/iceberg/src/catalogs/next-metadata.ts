import { randomUUID } from 'node:crypto'
import { IcebergError } from '../errors.ts'
import { inSlices } from '../json/steps.ts'
import { applyUpdatesSteps, droppedMetadataFiles } from '../metadata/apply-updates.ts'
import { metadataFileExtension } from '../metadata/metadata-file.ts'
import { checkRequirements } from '../metadata/requirements.ts'
import type { TableMetadata } from '../metadata/table-metadata.ts'
import type { MetadataUpdate } from '../metadata/update.ts'
import { assertWritable } from '../metadata/validate.ts'
import { propertyOf, tableProperties } from '../properties.ts'
import { below, fileName } from '../storage/location.ts'
import type { Storage } from '../storage/storage.ts'
import { conflict, type CommitRequest, type CommitResult, type LoadedTable } from './catalog.ts'

// What JDBC and file system catalogs do alike: they make the next metadata themselves, from the metadata that was loaded.

/** The metadata after a commit, or why there is none. */
export async function nextMetadata(table: LoadedTable, request: CommitRequest): Promise<TableMetadata | CommitResult> {
  const { metadata, metadataLocation, identifier } = table
  try {
    assertWritable(metadata)
    checkRequirements(metadata, request.requirements)
    assertUnheld(metadata, request.updates)
    const previous = metadataLocation === undefined ? {} : { previousLocation: metadataLocation }
    return await inSlices(applyUpdatesSteps(metadata, request.updates, { nowMs: Date.now(), ...previous }))
  } catch (error) {
    if (!(error instanceof IcebergError)) throw error
    if (error.code === 'requirement_failed') {
      return { ...conflict(identifier, 'it is no longer as required', error), neverSent: true }
    }
    return { outcome: 'not_applied', why: 'rejected', error, neverSent: true }
  }
}

/**
 * Refuses to remove a snapshot that a branch or tag holds, unless the same request removes or moves that ref. Java's
 * catalogs drop such refs without a word, and with them what somebody has just tagged to keep.
 */
function assertUnheld(metadata: TableMetadata, updates: readonly MetadataUpdate[]): void {
  const refs = new Map([...metadata.refs].map(([name, ref]) => [name, ref.snapshotId]))
  for (const update of updates) {
    if (update.action === 'remove-snapshot-ref') refs.delete(update.refName)
    if (update.action === 'set-snapshot-ref') refs.set(update.refName, update.ref.snapshotId)
  }
  // The other way round, a set of all snapshots that are removed would take long to make.
  const held = new Set(refs.values())
  const removed = new Set<bigint>()
  for (const update of updates) {
    if (update.action !== 'remove-snapshots') continue
    for (const id of update.snapshotIds) if (held.has(id)) removed.add(id)
  }
  for (const [name, snapshotId] of refs) {
    if (!removed.has(snapshotId)) continue
    throw new IcebergError(
      'ref_invalid',
      `Snapshot ${snapshotId} of the table at ${metadata.location} cannot be removed: "${name}" refers to it. ` +
        'Remove that ref in the same commit, or keep the snapshot.',
      { details: { ref: name, snapshotId: String(snapshotId) } },
    )
  }
}

export function isResult(made: TableMetadata | CommitResult): made is CommitResult {
  return 'outcome' in made
}

/** Where the next metadata file of a table goes: `00003-<uuid>.metadata.json` after `00002-….metadata.json`. */
export function nextMetadataLocation(metadata: TableMetadata, previousLocation: string | undefined): string {
  const folder = propertyOf(metadata, tableProperties.metadataPath) ?? below(metadata.location, 'metadata')
  const version = previousLocation === undefined ? 0 : versionOf(previousLocation) + 1
  const extension = metadataFileExtension(metadata.properties)
  return below(folder, `${String(version).padStart(5, '0')}-${randomUUID()}${extension}`)
}

// A name of another form, such as that of a registered file system table, counts as -1, as it does in Java.
function versionOf(location: string): number {
  const digits = /^(\d+)-/.exec(fileName(location))?.[1]
  return digits === undefined ? -1 : Number(digits)
}

/** After a commit: the files that fell off the metadata log, if the table wants them deleted. Never fails. */
export async function deleteDropped(storage: Storage, previous: TableMetadata, next: TableMetadata): Promise<void> {
  if (!propertyOf(next, tableProperties.deleteMetadataAfterCommit)) return
  // What stays is litter that orphan removal finds.
  await storage.delete(droppedMetadataFiles(previous, next)).catch(() => {})
}
