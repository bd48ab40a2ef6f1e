import type { LoadedTable } from '../../catalogs/catalog.ts'
import type { ContentFile } from '../../manifests/content-file.ts'
import type { Snapshot } from '../../metadata/snapshot.ts'
import type { FormatVersion } from '../../metadata/table-metadata.ts'
import { planContext, planWith, type PlanContext, type ScanFile } from '../../scan/plan.ts'

/** Files to rewrite together, as they are in one snapshot, with the deletes that apply to them there. */
export interface LiveGroup {
  readonly number: number
  /** The snapshot they were read from: what was committed after it is looked at before the commit. */
  readonly start: Snapshot
  readonly files: readonly ScanFile[]
  /** How often another commit was in its way so far. */
  readonly conflicts: number
}

/** A group whose rows are in new files, which nobody knows yet. */
export interface RewrittenGroup extends LiveGroup {
  readonly added: readonly ContentFile[]
  /** Of the table that the new files were written for. */
  readonly formatVersion: FormatVersion
}

/** Files that a group names, to be found in a snapshot. */
export interface WantedGroup {
  readonly number: number
  readonly paths: readonly string[]
  readonly conflicts: number
}

/** Paths that are looked up in one pass over the manifests: what is found of each is held until it is rewritten. */
export const pathsOfOnePass = 100_000

/** How a snapshot is read for a rewrite: by the table's present schema, which new files are written with. */
export function rewriteContext({ metadata }: LoadedTable, { snapshotId }: Snapshot): PlanContext {
  return planContext(metadata, { snapshotId, schemaId: metadata.currentSchemaId })
}

/**
 * Finds the files of groups in a snapshot. What is not live any more is left out of its group, and a group of which
 * nothing worth rewriting is left is left out as a whole.
 */
export async function findLiveGroups(
  table: LoadedTable,
  start: Snapshot,
  wanted: readonly WantedGroup[],
  signal?: AbortSignal,
  statistics = false,
): Promise<LiveGroup[]> {
  const groupOf = new Map(wanted.flatMap((group) => group.paths.map((path) => [path, group] as const)))
  const found = new Map<WantedGroup, ScanFile[]>()
  const seen = new Set<string>()
  const twice = new Set<WantedGroup>()
  const options = { statistics, ...(signal !== undefined && { signal }) }
  for await (const batch of planWith(table, options, rewriteContext(table, start))) {
    for (const scanned of batch) {
      const { filePath } = scanned.file
      const group = groupOf.get(filePath)
      if (group === undefined) continue
      // Removing one of two entries of a file would remove both.
      if (seen.has(filePath)) twice.add(group)
      seen.add(filePath)
      const files = found.get(group) ?? []
      found.set(group, files)
      files.push(scanned)
    }
  }
  return wanted.flatMap((group) => {
    const files = found.get(group) ?? []
    if (twice.has(group) || !isWorthIt(files, group)) return []
    return [{ number: group.number, start, files, conflicts: group.conflicts }]
  })
}

/** One file alone is rewritten when that was the plan, or to apply its deletes. */
function isWorthIt(files: readonly ScanFile[], { paths }: WantedGroup): boolean {
  const [only] = files
  if (only === undefined) return false
  if (files.length > 1 || paths.length === 1) return true
  const { vector, positions, equality } = only.deletes
  return vector !== undefined || positions.length + equality.length > 0
}
