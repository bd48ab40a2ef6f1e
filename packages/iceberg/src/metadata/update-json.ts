import { IcebergError } from '../errors.ts'
import type { Json, JsonObject } from '../json/json.ts'
import { ObjectReader } from '../json/object-reader.ts'
import { partitionSpecFromJson, partitionSpecToJson } from '../schema/partition-spec-json.ts'
import { highestFieldId } from '../schema/schema.ts'
import { schemaFromJson, schemaToJson } from '../schema/schema-json.ts'
import { refFromReader, refToJson, snapshotFromJson, snapshotToJson } from './snapshot-json.ts'
import { sortOrderFromJson, sortOrderToJson } from '../schema/sort-order-json.ts'
import {
  partitionStatisticsFromJson,
  partitionStatisticsToJson,
  statisticsFromJson,
  statisticsToJson,
} from './statistics-json.ts'
import type { FormatVersion } from './table-metadata.ts'
import type { MetadataRequirement, MetadataUpdate } from './update.ts'

/** An update as the REST catalog's protocol has it. */
export function updateToJson(update: MetadataUpdate): JsonObject {
  const { action } = update
  switch (action) {
    case 'assign-uuid':
      return { action, uuid: update.uuid }
    case 'upgrade-format-version':
      return { action, 'format-version': update.formatVersion }
    case 'add-schema':
      // last-column-id is no longer in the protocol; servers of older releases require it.
      return { action, schema: schemaToJson(update.schema), 'last-column-id': highestFieldId(update.schema) }
    case 'set-current-schema':
      return { action, 'schema-id': update.schemaId }
    case 'add-spec':
      return { action, spec: partitionSpecToJson(update.spec) }
    case 'set-default-spec':
      return { action, 'spec-id': update.specId }
    case 'add-sort-order':
      return { action, 'sort-order': sortOrderToJson(update.sortOrder) }
    case 'set-default-sort-order':
      return { action, 'sort-order-id': update.sortOrderId }
    case 'add-snapshot':
      return { action, snapshot: snapshotToJson(update.snapshot) }
    case 'set-snapshot-ref':
      return { action, 'ref-name': update.refName, ...refToJson(update.ref) }
    case 'remove-snapshots':
      return { action, 'snapshot-ids': [...update.snapshotIds] }
    case 'remove-snapshot-ref':
      return { action, 'ref-name': update.refName }
    case 'set-location':
      return { action, location: update.location }
    case 'set-properties':
      return { action, updates: { ...update.updates } }
    case 'remove-properties':
      return { action, removals: [...update.removals] }
    case 'set-statistics':
      return {
        action,
        'snapshot-id': update.statistics.snapshotId,
        statistics: statisticsToJson(update.statistics),
      }
    case 'set-partition-statistics':
      return { action, 'partition-statistics': partitionStatisticsToJson(update.partitionStatistics) }
    case 'remove-statistics':
    case 'remove-partition-statistics':
      return { action, 'snapshot-id': update.snapshotId }
    case 'remove-partition-specs':
      return { action, 'spec-ids': [...update.specIds] }
    case 'remove-schemas':
      return { action, 'schema-ids': [...update.schemaIds] }
  }
}

export function updateFromJson(json: Json | undefined): MetadataUpdate {
  const r = new ObjectReader(json, 'update')
  const action = r.string('action') as MetadataUpdate['action']
  switch (action) {
    case 'assign-uuid':
      return { action, uuid: r.string('uuid') }
    case 'upgrade-format-version':
      return { action, formatVersion: r.int('format-version') as FormatVersion }
    case 'add-schema':
      return { action, schema: schemaFromJson(r.raw('schema')) }
    case 'set-current-schema':
      return { action, schemaId: r.int('schema-id') }
    case 'add-spec':
      return { action, spec: partitionSpecFromJson(r.raw('spec')) }
    case 'set-default-spec':
      return { action, specId: r.int('spec-id') }
    case 'add-sort-order':
      return { action, sortOrder: sortOrderFromJson(r.raw('sort-order')) }
    case 'set-default-sort-order':
      return { action, sortOrderId: r.int('sort-order-id') }
    case 'add-snapshot':
      return { action, snapshot: snapshotFromJson(r.raw('snapshot')) }
    case 'set-snapshot-ref':
      return { action, refName: r.string('ref-name'), ref: refFromReader(r, 'set-snapshot-ref') }
    case 'remove-snapshots':
      return { action, snapshotIds: r.array('snapshot-ids', longItem) }
    case 'remove-snapshot-ref':
      return { action, refName: r.string('ref-name') }
    default:
      return tableUpdateFromJson(r, action)
  }
}

function tableUpdateFromJson(r: ObjectReader, action: MetadataUpdate['action']): MetadataUpdate {
  switch (action) {
    case 'set-location':
      return { action, location: r.string('location') }
    case 'set-properties':
      return { action, updates: r.optionalStrings('updates') ?? r.optionalStrings('updated') ?? {} }
    case 'remove-properties':
      return {
        action,
        removals: r.optionalArray('removals', stringItem) ?? r.optionalArray('removed', stringItem) ?? [],
      }
    case 'set-statistics':
      return { action, statistics: statisticsFromJson(r.raw('statistics')) }
    case 'set-partition-statistics':
      return { action, partitionStatistics: partitionStatisticsFromJson(r.raw('partition-statistics')) }
    case 'remove-statistics':
    case 'remove-partition-statistics':
      return { action, snapshotId: r.long('snapshot-id') }
    case 'remove-partition-specs':
      return { action, specIds: r.array('spec-ids', intItem) }
    case 'remove-schemas':
      return { action, schemaIds: r.array('schema-ids', intItem) }
    default:
      throw new IcebergError('metadata_unsupported', `The metadata update "${action}" is not supported`)
  }
}

function longItem(json: Json, what: string): bigint {
  return new ObjectReader({ id: json }, what).long('id')
}

function intItem(json: Json, what: string): number {
  return new ObjectReader({ id: json }, what).int('id')
}

function stringItem(json: Json, what: string): string {
  return new ObjectReader({ key: json }, what).string('key')
}

/** A requirement as the REST catalog's protocol has it. */
export function requirementToJson(requirement: MetadataRequirement): JsonObject {
  const { type } = requirement
  switch (type) {
    case 'assert-create':
      return { type }
    case 'assert-table-uuid':
      return { type, uuid: requirement.uuid }
    case 'assert-ref-snapshot-id':
      return { type, ref: requirement.ref, 'snapshot-id': requirement.snapshotId }
    case 'assert-last-assigned-field-id':
      return { type, 'last-assigned-field-id': requirement.lastAssignedFieldId }
    case 'assert-current-schema-id':
      return { type, 'current-schema-id': requirement.currentSchemaId }
    case 'assert-last-assigned-partition-id':
      return { type, 'last-assigned-partition-id': requirement.lastAssignedPartitionId }
    case 'assert-default-spec-id':
      return { type, 'default-spec-id': requirement.defaultSpecId }
    case 'assert-default-sort-order-id':
      return { type, 'default-sort-order-id': requirement.defaultSortOrderId }
  }
}

export function requirementFromJson(json: Json | undefined): MetadataRequirement {
  const r = new ObjectReader(json, 'requirement')
  const type = r.string('type') as MetadataRequirement['type']
  switch (type) {
    case 'assert-create':
      return { type }
    case 'assert-table-uuid':
      return { type, uuid: r.string('uuid') }
    case 'assert-ref-snapshot-id':
      return { type, ref: r.string('ref'), snapshotId: r.optionalLong('snapshot-id') ?? null }
    case 'assert-last-assigned-field-id':
      return { type, lastAssignedFieldId: r.int('last-assigned-field-id') }
    case 'assert-current-schema-id':
      return { type, currentSchemaId: r.int('current-schema-id') }
    case 'assert-last-assigned-partition-id':
      return { type, lastAssignedPartitionId: r.int('last-assigned-partition-id') }
    case 'assert-default-spec-id':
      return { type, defaultSpecId: r.int('default-spec-id') }
    case 'assert-default-sort-order-id':
      return { type, defaultSortOrderId: r.int('default-sort-order-id') }
  }
  throw new IcebergError('metadata_unsupported', `The requirement "${String(type)}" is not supported`)
}
