import type { TableFacts } from '@fencepost/iceberg'
import type { ScanShape } from './scan-cost.ts'

/** What the health of a table is told from. Plain data: `gatherHealthFacts` reads it from a table. */
export interface HealthFacts {
  readonly table: TableFacts
  readonly formatVersion: number
  /** What a scan reads now, and what it would have to read of the same rows at least. */
  readonly now: ScanShape
  readonly ideal: ScanShape
  readonly plans: PlannedActions
  /** Why no action can be done on the table; undefined: they can. */
  readonly unsupported?: string
}

/** What the actions would do to the table as it is, with its own settings. */
export interface PlannedActions {
  readonly dataFiles: {
    readonly files: number
    readonly bytes: number
    readonly groups: number
    /** What a scan reads after it. */
    readonly after: ScanShape
    readonly options: Readonly<Record<string, number | boolean>>
  }
  readonly positionDeletes: { readonly files: number; readonly bytes: number; readonly filesAfter: number }
  readonly manifests: { readonly manifests: number; readonly manifestsAfter: number; readonly unclustered: boolean }
  /** Undefined: files of this table must not be deleted (`gc.enabled`). */
  readonly snapshots: { readonly expired: number; readonly files: number; readonly bytes: number } | undefined
  /** Undefined: nobody has listed the table's folder, or it must not be cleaned. */
  readonly orphans:
    | { readonly files: number; readonly bytes: number; readonly share: number; readonly isSuspicious: boolean }
    | undefined
}
