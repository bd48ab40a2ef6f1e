import type { JsonObject } from '../json/json.ts'
import type { Transform } from './partition-spec.ts'

export interface SortField {
  readonly sourceId: number
  readonly sourceIds?: readonly number[]
  readonly transform: Transform
  readonly direction: 'asc' | 'desc'
  readonly nullOrder: 'nulls-first' | 'nulls-last'
  readonly unknownKeys?: JsonObject
}

/** Order 0 is the unsorted one and has no fields. */
export interface SortOrder {
  readonly orderId: number
  readonly fields: readonly SortField[]
  readonly unknownKeys?: JsonObject
}
