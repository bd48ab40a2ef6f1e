import type { JsonObject } from '../json/json.ts'

/** How a partition value is made of a source value. `unknown` keeps the text of a transform this package does not know. */
export type Transform =
  | { readonly name: 'identity' | 'year' | 'month' | 'day' | 'hour' | 'void' }
  | { readonly name: 'bucket'; readonly buckets: number }
  | { readonly name: 'truncate'; readonly width: number }
  | { readonly name: 'unknown'; readonly text: string }

export interface PartitionField {
  /** 1000 and up, unique over all specs of a table. */
  readonly fieldId: number
  readonly sourceId: number
  /** Set instead of a single source (v3, transforms of several arguments); such a transform is always unknown here. */
  readonly sourceIds?: readonly number[]
  readonly name: string
  readonly transform: Transform
  readonly unknownKeys?: JsonObject
}

export interface PartitionSpec {
  readonly specId: number
  readonly fields: readonly PartitionField[]
  readonly unknownKeys?: JsonObject
}

/** The text of a transform as the format writes it: "bucket[16]". */
export function transformText(transform: Transform): string {
  switch (transform.name) {
    case 'bucket':
      return `bucket[${transform.buckets}]`
    case 'truncate':
      return `truncate[${transform.width}]`
    case 'unknown':
      return transform.text
    case 'identity':
    case 'year':
    case 'month':
    case 'day':
    case 'hour':
    case 'void':
      return transform.name
  }
}

/** Whether rows of this spec are not divided: no fields, or only void ones. */
export function isUnpartitioned(spec: PartitionSpec): boolean {
  return spec.fields.every((field) => field.transform.name === 'void')
}
