import type { FormatVersion } from '../metadata/table-metadata.ts'
import type { Field, PlainTypeName, Type } from '../schema/type.ts'
import type { PartitionTypeField } from './partition-type.ts'

function required(id: number, name: string, type: Type | PlainTypeName): Field {
  return { id, name, required: true, type: typeof type === 'string' ? { type } : type }
}

function optional(id: number, name: string, type: Type | PlainTypeName): Field {
  return { ...required(id, name, type), required: false }
}

function columnMap(keyId: number, valueId: number, value: PlainTypeName): Type {
  return { type: 'map', keyId, key: { type: 'int' }, valueId, value: { type: value }, valueRequired: true }
}

function listOf(elementId: number, element: PlainTypeName): Type {
  return { type: 'list', elementId, element: { type: element }, elementRequired: true }
}

/** The fields of a manifest of this format version, in the order they are written in. */
export function manifestFields(version: FormatVersion, partition: readonly PartitionTypeField[]): Field[] {
  const sequences = [optional(3, 'sequence_number', 'long'), optional(4, 'file_sequence_number', 'long')]
  return [
    required(0, 'status', 'int'),
    optional(1, 'snapshot_id', 'long'),
    ...(version > 1 ? sequences : []),
    required(2, 'data_file', { type: 'struct', fields: fileFields(version, partition) }),
  ]
}

function fileFields(version: FormatVersion, partition: readonly PartitionTypeField[]): Field[] {
  const tuple = partition.map((field) => optional(field.fieldId, field.name, field.type))
  return [
    ...(version > 1 ? [required(134, 'content', 'int')] : []),
    required(100, 'file_path', 'string'),
    required(101, 'file_format', 'string'),
    required(102, 'partition', { type: 'struct', fields: tuple }),
    required(103, 'record_count', 'long'),
    required(104, 'file_size_in_bytes', 'long'),
    ...(version === 1 ? [required(105, 'block_size_in_bytes', 'long')] : []),
    optional(108, 'column_sizes', columnMap(117, 118, 'long')),
    optional(109, 'value_counts', columnMap(119, 120, 'long')),
    optional(110, 'null_value_counts', columnMap(121, 122, 'long')),
    optional(137, 'nan_value_counts', columnMap(138, 139, 'long')),
    optional(125, 'lower_bounds', columnMap(126, 127, 'binary')),
    optional(128, 'upper_bounds', columnMap(129, 130, 'binary')),
    optional(131, 'key_metadata', 'binary'),
    optional(132, 'split_offsets', listOf(133, 'long')),
    ...(version > 1 ? [optional(135, 'equality_ids', listOf(136, 'int'))] : []),
    optional(140, 'sort_order_id', 'int'),
    ...(version >= 3 ? [optional(142, 'first_row_id', 'long')] : []),
    ...(version > 1 ? [optional(143, 'referenced_data_file', 'string')] : []),
    ...(version >= 3 ? [optional(144, 'content_offset', 'long'), optional(145, 'content_size_in_bytes', 'long')] : []),
  ]
}

const summary: Type = {
  type: 'list',
  elementId: 508,
  elementRequired: true,
  element: {
    type: 'struct',
    fields: [
      required(509, 'contains_null', 'boolean'),
      optional(518, 'contains_nan', 'boolean'),
      optional(510, 'lower_bound', 'binary'),
      optional(511, 'upper_bound', 'binary'),
    ],
  },
}

/** The fields of a manifest list of this format version, in the order they are written in. */
export function manifestListFields(version: FormatVersion): Field[] {
  const count = version === 1 ? optional : required
  const path = [
    required(500, 'manifest_path', 'string'),
    required(501, 'manifest_length', 'long'),
    required(502, 'partition_spec_id', 'int'),
  ]
  const files = [
    count(504, 'added_files_count', 'int'),
    count(505, 'existing_files_count', 'int'),
    count(506, 'deleted_files_count', 'int'),
  ]
  const rows = [
    count(512, 'added_rows_count', 'long'),
    count(513, 'existing_rows_count', 'long'),
    count(514, 'deleted_rows_count', 'long'),
  ]
  const snapshot = required(503, 'added_snapshot_id', 'long')
  const partitions = optional(507, 'partitions', summary)
  const keyMetadata = optional(519, 'key_metadata', 'binary')
  if (version === 1) return [...path, snapshot, ...files, partitions, ...rows, keyMetadata]
  return [
    ...path,
    required(517, 'content', 'int'),
    required(515, 'sequence_number', 'long'),
    required(516, 'min_sequence_number', 'long'),
    snapshot,
    ...files,
    ...rows,
    partitions,
    keyMetadata,
    ...(version >= 3 ? [optional(520, 'first_row_id', 'long')] : []),
  ]
}
