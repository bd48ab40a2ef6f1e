import { IcebergError } from '../errors.ts'
import type { TableMetadata } from './table-metadata.ts'
import type { MetadataRequirement } from './update.ts'

/** Throws `requirement_failed` unless all requirements hold of the table; `undefined` is a table that does not exist. */
export function checkRequirements(
  metadata: TableMetadata | undefined,
  requirements: readonly MetadataRequirement[],
): void {
  for (const requirement of requirements) {
    const problem = problemWith(metadata, requirement)
    if (problem === undefined) continue
    const table = metadata === undefined ? 'The table' : `The table at ${metadata.location}`
    throw new IcebergError('requirement_failed', `${table} is not as required: ${problem}`, {
      details: { requirement },
    })
  }
}

/** Whether all requirements hold of the table. */
export function meetsRequirements(metadata: TableMetadata, requirements: readonly MetadataRequirement[]): boolean {
  return requirements.every((requirement) => problemWith(metadata, requirement) === undefined)
}

function problemWith(metadata: TableMetadata | undefined, requirement: MetadataRequirement): string | undefined {
  if (requirement.type === 'assert-create') return metadata === undefined ? undefined : 'it exists already'
  if (metadata === undefined) return 'it does not exist'
  switch (requirement.type) {
    case 'assert-table-uuid':
      return differs('its uuid', metadata.tableUuid?.toLowerCase(), requirement.uuid.toLowerCase())
    case 'assert-ref-snapshot-id': {
      const snapshotId = metadata.refs.get(requirement.ref)?.snapshotId
      return differs(`the snapshot of "${requirement.ref}"`, snapshotId, requirement.snapshotId ?? undefined)
    }
    case 'assert-last-assigned-field-id':
      return differs('its last column id', metadata.lastColumnId, requirement.lastAssignedFieldId)
    case 'assert-current-schema-id':
      return differs('its current schema', metadata.currentSchemaId, requirement.currentSchemaId)
    case 'assert-last-assigned-partition-id':
      return differs('its last partition field id', metadata.lastPartitionId, requirement.lastAssignedPartitionId)
    case 'assert-default-spec-id':
      return differs('its default partition spec', metadata.defaultSpecId, requirement.defaultSpecId)
    case 'assert-default-sort-order-id':
      return differs('its default sort order', metadata.defaultSortOrderId, requirement.defaultSortOrderId)
  }
}

type Id = string | number | bigint | undefined

function differs(what: string, actual: Id, expected: Id): string | undefined {
  return actual === expected ? undefined : `${what} is ${actual ?? 'not set'}, not ${expected ?? 'unset'}`
}
