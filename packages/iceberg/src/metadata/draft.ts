import { IcebergError } from '../errors.ts'
import type { TableMetadata } from './table-metadata.ts'

type Mutable<T> = { -readonly [K in keyof T]: T[K] }

/** Metadata while updates are being applied to it. Members are replaced, never changed in place. */
export interface Draft {
  readonly next: Mutable<TableMetadata>
  readonly nowMs: number
  /** Snapshots added by these updates, by id. */
  readonly added: Set<bigint>
  /** Snapshots that were the head of main between two of these updates; the log does not mention them. */
  readonly passed: Set<bigint>
  removedSnapshots: boolean
  lastAddedSchemaId?: number
  lastAddedSpecId?: number
  lastAddedOrderId?: number
}

export function updateInvalid(draft: Draft, message: string): IcebergError {
  return new IcebergError('update_invalid', `The table at ${draft.next.location}: ${message}`)
}
