import type { PartitionValues } from './content-file.ts'
import type { PartitionTypeField } from './partition-type.ts'
import type { PartitionField, PartitionSpec } from '../schema/partition-spec.ts'
import type { PrimitiveType } from '../schema/type.ts'
import { viewOf } from '../values/bytes.ts'
import { formatDate, formatTime, formatTimestamp } from '../values/date-time.ts'
import { formatDecimal } from '../values/decimal.ts'
import type { Value } from '../values/value.ts'

/** The folders of a partition, as in "day=2026-01-02/region=north"; empty for an unpartitioned spec. */
export function partitionPath(
  spec: PartitionSpec,
  types: readonly PartitionTypeField[],
  partition: PartitionValues,
): string {
  return spec.fields
    .map((field, index) => {
      const type = types[index]?.type ?? { type: 'unknown' }
      return `${encode(field.name)}=${encode(humanText(field, type, partition[index] ?? null))}`
    })
    .join('/')
}

// As Java's URLEncoder, which other writers use: a space is a plus.
function encode(text: string): string {
  return encodeURIComponent(text.toWellFormed())
    .replaceAll('%20', '+')
    .replaceAll(/[!'()~]/g, (c) => `%${c.charCodeAt(0).toString(16).toUpperCase()}`)
}

/** A partition value as people read it: "2026-01-02" for a day, "2026-01-02-03" for an hour. */
function humanText(field: PartitionField, type: PrimitiveType, value: Value | null): string {
  if (value === null) return 'null'
  switch (field.transform.name) {
    case 'year':
      return String(1970 + Number(value)).padStart(4, '0')
    case 'month': {
      const months = Number(value)
      const year = 1970 + Math.floor(months / 12)
      return `${String(year).padStart(4, '0')}-${String((((months % 12) + 12) % 12) + 1).padStart(2, '0')}`
    }
    case 'day':
      return formatDate(Number(value))
    case 'hour': {
      const hours = Number(value)
      return `${formatDate(Math.floor(hours / 24))}-${String(((hours % 24) + 24) % 24).padStart(2, '0')}`
    }
    default:
      return valueText(type, value)
  }
}

function valueText(type: PrimitiveType, value: Value): string {
  switch (type.type) {
    case 'date':
      return formatDate(Number(value))
    case 'time':
      return formatTime(value as bigint, 6)
    case 'timestamp':
    case 'timestamptz':
      return formatTimestamp(value as bigint, 6, type.type === 'timestamptz')
    case 'timestamp_ns':
    case 'timestamptz_ns':
      return formatTimestamp(value as bigint, 9, type.type === 'timestamptz_ns')
    case 'decimal':
      return formatDecimal(value as bigint, type.scale)
    case 'fixed':
    case 'binary':
      return viewOf(value as Uint8Array).toString('base64')
    default:
      return String(value)
  }
}
