import { IcebergError } from '../errors.ts'
import type { Json, JsonObject } from '../json/json.ts'
import { compact, defined, ObjectReader } from '../json/object-reader.ts'
import type { Snapshot, SnapshotRef } from './snapshot.ts'

export function snapshotFromJson(json: Json | undefined, what = 'snapshot'): Snapshot {
  const r = new ObjectReader(json, what)
  const snapshotId = r.long('snapshot-id')
  if (r.optionalString('key-id') !== undefined) {
    throw new IcebergError('metadata_unsupported', `Snapshot ${snapshotId} is encrypted; encryption is not supported`)
  }
  const manifests = r.optionalArray('manifests', (path, where) => {
    if (typeof path !== 'string') throw new IcebergError('metadata_invalid', `${where} is not a location`)
    return path
  })
  return defined({
    snapshotId,
    parentSnapshotId: r.optionalLong('parent-snapshot-id'),
    sequenceNumber: r.optionalLong('sequence-number') ?? 0n,
    timestampMs: r.int('timestamp-ms'),
    manifestList: r.optionalString('manifest-list'),
    manifests,
    summary: r.optionalStrings('summary'),
    schemaId: r.optionalInt('schema-id'),
    firstRowId: r.optionalLong('first-row-id'),
    addedRows: r.optionalLong('added-rows'),
    ...r.unknown(),
  })
}

export function snapshotToJson(snapshot: Snapshot): JsonObject {
  return compact({
    'sequence-number': snapshot.sequenceNumber > 0n ? snapshot.sequenceNumber : undefined,
    'snapshot-id': snapshot.snapshotId,
    'parent-snapshot-id': snapshot.parentSnapshotId,
    'timestamp-ms': snapshot.timestampMs,
    summary: snapshot.summary,
    'manifest-list': snapshot.manifestList,
    manifests: snapshot.manifestList === undefined ? snapshot.manifests : undefined,
    'schema-id': snapshot.schemaId,
    'first-row-id': snapshot.firstRowId,
    'added-rows': snapshot.addedRows,
    ...snapshot.unknownKeys,
  })
}

export function refFromJson(json: Json | undefined, what = 'ref'): SnapshotRef {
  const r = new ObjectReader(json, what)
  return refFromReader(r, what)
}

/** The members of a ref, from an object that may hold others: unknown ones are what the reader was not asked for. */
export function refFromReader(r: ObjectReader, what: string): SnapshotRef {
  const type = r.string('type').toLowerCase()
  if (type !== 'branch' && type !== 'tag') {
    throw new IcebergError('metadata_invalid', `${what} has the type "${type}"; it must be branch or tag`)
  }
  const branchOrTag: SnapshotRef['type'] = type
  return defined({
    snapshotId: r.long('snapshot-id'),
    type: branchOrTag,
    minSnapshotsToKeep: r.optionalInt('min-snapshots-to-keep'),
    maxSnapshotAgeMs: r.optionalLong('max-snapshot-age-ms'),
    maxRefAgeMs: r.optionalLong('max-ref-age-ms'),
    ...r.unknown(),
  })
}

export function refToJson(ref: SnapshotRef): JsonObject {
  return compact({
    'snapshot-id': ref.snapshotId,
    type: ref.type,
    'min-snapshots-to-keep': ref.minSnapshotsToKeep,
    'max-snapshot-age-ms': ref.maxSnapshotAgeMs,
    'max-ref-age-ms': ref.maxRefAgeMs,
    ...ref.unknownKeys,
  })
}
