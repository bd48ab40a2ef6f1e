import { IcebergError } from '../errors.ts'
import { checkDefaults, schemaVersionProblem } from './apply-schema-updates.ts'
import type { PartitionSpec } from '../schema/partition-spec.ts'
import { fieldsById, highestFieldId, type Schema } from '../schema/schema.ts'
import type { SortOrder } from '../schema/sort-order.ts'
import type { FormatVersion, TableMetadata } from './table-metadata.ts'
import type { Field, Type } from '../schema/type.ts'

export interface CreateTableOptions {
  readonly location: string
  readonly schema: Pick<Schema, 'fields'> & Partial<Schema>
  /** Source ids are those of the given schema. Default: unpartitioned. */
  readonly partitionSpec?: Pick<PartitionSpec, 'fields'>
  readonly sortOrder?: Pick<SortOrder, 'fields'>
  readonly properties?: Readonly<Record<string, string>>
  /** Default: 2, or what the property `format-version` says; that property is not kept. */
  readonly formatVersion?: FormatVersion
  readonly uuid?: string
  readonly nowMs: number
}

/** Metadata of a new, empty table. Field ids are given afresh from 1, as catalogs do. */
export function createTableMetadata(options: CreateTableOptions): TableMetadata {
  const { 'format-version': property, ...properties } = options.properties ?? {}
  const formatVersion = options.formatVersion ?? Number(property ?? 2)
  if (formatVersion !== 1 && formatVersion !== 2 && formatVersion !== 3) {
    throw new IcebergError('metadata_unsupported', `Format version ${formatVersion} is not supported by this release`)
  }
  const { schema, newIds } = withFreshIds(options.schema)
  const problem = schemaVersionProblem(schema, formatVersion)
  if (problem !== undefined) throw new IcebergError('schema_change_invalid', `A table cannot be created: ${problem}`)
  const source = (sourceId: number): number => newIds.get(sourceId) ?? -1
  const specFields = (options.partitionSpec?.fields ?? []).map((field, index) => ({
    ...field,
    sourceId: source(field.sourceId),
    fieldId: 1000 + index,
  }))
  const sortFields = (options.sortOrder?.fields ?? []).map((f) => ({ ...f, sourceId: source(f.sourceId) }))
  const orderId = sortFields.length === 0 ? 0 : 1
  const metadata: TableMetadata = {
    formatVersion,
    tableUuid: options.uuid ?? crypto.randomUUID(),
    location: options.location,
    lastSequenceNumber: 0n,
    lastUpdatedMs: options.nowMs,
    lastColumnId: highestFieldId(schema),
    currentSchemaId: 0,
    schemas: [schema],
    defaultSpecId: 0,
    partitionSpecs: [{ specId: 0, fields: specFields }],
    lastPartitionId: 999 + specFields.length,
    defaultSortOrderId: orderId,
    sortOrders: [{ orderId, fields: sortFields }],
    properties,
    snapshots: [],
    snapshotLog: [],
    metadataLog: [],
    refs: new Map(),
    statistics: [],
    partitionStatistics: [],
    nextRowId: 0n,
  }
  const draft = {
    next: metadata,
    nowMs: 0,
    added: new Set<bigint>(),
    passed: new Set<bigint>(),
    removedSnapshots: false,
  }
  checkDefaults(draft)
  return metadata
}

function withFreshIds(given: CreateTableOptions['schema']): { schema: Schema; newIds: Map<number, number> } {
  const newIds = new Map<number, number>()
  let last = 0
  const fields = freshFields(given.fields, () => (last += 1), newIds)
  const identifierFieldIds = (given.identifierFieldIds ?? []).map((id) => newIds.get(id) ?? -1)
  const schema = { ...given, schemaId: 0, identifierFieldIds, fields }
  const byId = fieldsById(schema)
  if (identifierFieldIds.some((id) => byId.get(id)?.required !== true)) {
    throw new IcebergError('schema_change_invalid', 'Identifier fields must be required columns of the schema')
  }
  return { schema, newIds }
}

/** Gives ids to the fields of one level first, then to what is inside them. `newIds` maps the old to the new. */
function freshFields(fields: readonly Field[], nextId: () => number, newIds: Map<number, number> = new Map()): Field[] {
  const numbered = fields.map((field) => {
    const id = nextId()
    newIds.set(field.id, id)
    return { ...field, id }
  })
  return numbered.map((field) => ({ ...field, type: freshType(field.type, nextId, newIds) }))
}

/** The type with new ids for everything inside it. */
export function freshType(type: Type, nextId: () => number, newIds: Map<number, number> = new Map()): Type {
  switch (type.type) {
    case 'struct':
      return { ...type, fields: freshFields(type.fields, nextId, newIds) }
    case 'list': {
      const elementId = nextId()
      newIds.set(type.elementId, elementId)
      return { ...type, elementId, element: freshType(type.element, nextId, newIds) }
    }
    case 'map': {
      const keyId = nextId()
      const valueId = nextId()
      newIds.set(type.keyId, keyId).set(type.valueId, valueId)
      return {
        ...type,
        keyId,
        valueId,
        key: freshType(type.key, nextId, newIds),
        value: freshType(type.value, nextId, newIds),
      }
    }
    default:
      return type
  }
}
