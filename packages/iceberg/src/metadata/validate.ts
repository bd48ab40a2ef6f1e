import { IcebergError } from '../errors.ts'
import type { Steps } from '../json/steps.ts'
import { propertyOf, tableProperties } from '../properties.ts'
import { transformText } from '../schema/partition-spec.ts'
import { childrenOf, fieldsById } from '../schema/schema.ts'
import type { Schema } from '../schema/schema.ts'
import { mainBranch, partitionSpecOf, type TableMetadata } from './table-metadata.ts'
import type { Field } from '../schema/type.ts'

/** Checks what must hold inside one metadata file; throws `metadata_invalid` naming the first thing that does not. */
export function* checkTableMetadata(metadata: TableMetadata, what: string): Steps<void> {
  const fail = (message: string): never => {
    throw new IcebergError('metadata_invalid', `${what}: ${message}`)
  }
  if (!metadata.schemas.some((s) => s.schemaId === metadata.currentSchemaId)) {
    fail(`the current schema ${metadata.currentSchemaId} is not among its schemas`)
  }
  if (!metadata.partitionSpecs.some((s) => s.specId === metadata.defaultSpecId)) {
    fail(`the default partition spec ${metadata.defaultSpecId} is not among its specs`)
  }
  if (!metadata.sortOrders.some((s) => s.orderId === metadata.defaultSortOrderId)) {
    // The unsorted order may be left out of the list.
    if (metadata.defaultSortOrderId !== 0) fail(`sort order ${metadata.defaultSortOrderId} is not among its orders`)
  }
  for (const schema of metadata.schemas) checkSchema(schema, fail)
  yield* checkSnapshots(metadata, fail)
}

function checkSchema(schema: Schema, fail: (message: string) => never): void {
  const ids = new Set<number>()
  const visit = (fields: readonly Field[]): void => {
    const names = new Set<string>()
    for (const field of fields) {
      if (ids.has(field.id)) fail(`schema ${schema.schemaId} has the field id ${field.id} twice`)
      if (names.has(field.name)) fail(`schema ${schema.schemaId} has the name "${field.name}" twice`)
      ids.add(field.id)
      names.add(field.name)
      visit(childrenOf(field.type))
    }
  }
  visit(schema.fields)
}

function* checkSnapshots(metadata: TableMetadata, fail: (message: string) => never): Steps<void> {
  const ids = new Set<bigint>()
  for (const snapshot of metadata.snapshots) {
    if (ids.has(snapshot.snapshotId)) fail(`snapshot ${snapshot.snapshotId} is listed twice`)
    ids.add(snapshot.snapshotId)
    if (snapshot.sequenceNumber > metadata.lastSequenceNumber && metadata.formatVersion > 1) {
      fail(`snapshot ${snapshot.snapshotId} has a sequence number above the last, ${metadata.lastSequenceNumber}`)
    }
    if (snapshot.manifestList === undefined && snapshot.manifests === undefined) {
      fail(`snapshot ${snapshot.snapshotId} has neither a manifest list nor manifests`)
    }
    yield
  }
  const main = metadata.refs.get(mainBranch)
  if (metadata.currentSnapshotId !== main?.snapshotId) {
    fail(`main is at ${main?.snapshotId}, but the current snapshot is ${metadata.currentSnapshotId ?? 'not set'}`)
  }
  for (const [name, ref] of metadata.refs) {
    if (!ids.has(ref.snapshotId)) fail(`"${name}" refers to snapshot ${ref.snapshotId}, which is not in the table`)
  }
}

/**
 * Refuses tables this package can read but must not write to: encrypted ones, and those whose partition spec has a
 * transform it does not know.
 */
export function assertWritable(metadata: TableMetadata): void {
  if (propertyOf(metadata, tableProperties.encryptionKeyId) !== undefined) {
    throw new IcebergError(
      'metadata_unsupported',
      `The table at ${metadata.location} is encrypted (encryption.key-id is set); this package cannot write to it`,
    )
  }
  const fields = fieldsById({ fields: metadata.schemas.flatMap((s) => s.fields) })
  for (const field of partitionSpecOf(metadata).fields) {
    if (field.transform.name !== 'unknown') continue
    const column = fields.get(field.sourceId)?.path.join('.') ?? field.sourceId
    throw new IcebergError(
      'metadata_unsupported',
      `The table at ${metadata.location} is partitioned by ${transformText(field.transform)} of column ${column}, ` +
        'which this package does not know; it cannot write to it',
    )
  }
}
