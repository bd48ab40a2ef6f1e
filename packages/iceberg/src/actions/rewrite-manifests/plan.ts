import type { LoadedTable } from '../../catalogs/catalog.ts'
import type { ManifestFile } from '../../manifests/manifest-file.ts'
import { currentSnapshot, mainBranch, partitionSpecOf } from '../../metadata/table-metadata.ts'
import { assertWritable } from '../../metadata/validate.ts'
import { manifestsOf, partitionTypesIn } from '../../snapshot/live-files.ts'
import { targetManifestBytes } from '../../write/new-manifests.ts'
import { plannedTable, type PlannedTable } from '../action.ts'
import { clustered, orderFields } from './partition-order.ts'

export interface RewriteManifestsOptions {
  /** Manifests of this partition spec are rewritten. Default: the table's default spec. */
  readonly specId?: number
  /** Names of partition fields to order files by. Default: all fields of the spec. */
  readonly sortBy?: readonly string[]
  /** Which manifests may be rewritten. Default: all. */
  readonly rewriteIf?: (manifest: ManifestFile) => boolean
  /** Taken for Spark's sake. Nothing is cached here. */
  readonly useCaching?: boolean
}

export interface PlannedManifestFile {
  readonly path: string
  readonly bytes: number
  /** Live ones; undefined where an old table does not say. */
  readonly files?: number
}

/** Why manifests are rewritten, or not. */
export type ManifestReason =
  /** Their ranges of partitions overlap, so that readers open more of them than they need. */
  | 'unclustered'
  /** Some fit into one together. */
  | 'small'
  /** There is nothing to gain. */
  | 'well-as-they-are'
  | 'other-spec'
  | 'not-wanted'

/** Manifests of one kind whose files are put into new ones. */
export interface ManifestGroup {
  readonly content: ManifestFile['content']
  readonly why: ManifestReason
  readonly manifests: readonly PlannedManifestFile[]
  readonly bytes: number
  /** By the bytes, as Spark counts them. Often fewer are needed. */
  readonly expectedManifests: number
}

/** What a rewrite of manifests will do. Plain data, which prints as JSON. */
export interface RewriteManifestsPlan {
  readonly action: 'rewrite_manifests'
  readonly table: PlannedTable
  readonly specId: number
  readonly sortBy: readonly string[]
  readonly targetBytes: number
  readonly groups: readonly ManifestGroup[]
  readonly leftOut: readonly {
    readonly content: ManifestFile['content']
    readonly why: ManifestReason
    readonly manifests: number
    readonly bytes: number
  }[]
}

/**
 * Finds out whether the manifests of main are worth rewriting. Like Spark's procedure it takes all manifests of a spec
 * or none. Unlike it, it takes none when they are ordered by partition and no two neighbours fit into one: then a
 * rewrite would make the same again. Reads the manifest list only.
 */
export async function planRewriteManifests(
  table: LoadedTable,
  options: RewriteManifestsOptions = {},
): Promise<RewriteManifestsPlan> {
  const { metadata } = table
  assertWritable(metadata)
  const { specId = metadata.defaultSpecId, sortBy = [], rewriteIf = () => true } = options
  const spec = partitionSpecOf(metadata, specId)
  const head = currentSnapshot(metadata, mainBranch)
  const manifests = await manifestsOf(table, head)
  const fields = orderFields(spec, await partitionTypesIn(table, manifests)(specId), sortBy)
  const targetBytes = targetManifestBytes(metadata)
  const groups: ManifestGroup[] = []
  const leftOut: RewriteManifestsPlan['leftOut'][number][] = []
  for (const content of ['data', 'deletes'] as const) {
    const ofKind = manifests.filter((manifest) => manifest.content === content)
    const leave = (why: ManifestReason, left: readonly ManifestFile[]): void => {
      if (left.length > 0) leftOut.push({ content, why, manifests: left.length, bytes: bytesOf(left) })
    }
    const ofSpec = ofKind.filter((manifest) => manifest.partitionSpecId === specId)
    const wanted = ofSpec.filter(rewriteIf)
    leave(
      'other-spec',
      ofKind.filter((manifest) => manifest.partitionSpecId !== specId),
    )
    leave(
      'not-wanted',
      ofSpec.filter((manifest) => !wanted.includes(manifest)),
    )
    const ordered = clustered(wanted, fields)
    const why = ordered === undefined ? 'unclustered' : hasSmallNeighbours(ordered, targetBytes) ? 'small' : undefined
    if (why === undefined) {
      leave('well-as-they-are', wanted)
      continue
    }
    const bytes = bytesOf(wanted)
    const expectedManifests = Math.ceil(bytes / targetBytes)
    groups.push({ content, why, manifests: wanted.map(described), bytes, expectedManifests })
  }
  return {
    action: 'rewrite_manifests',
    table: plannedTable(table, head?.snapshotId),
    specId,
    sortBy,
    targetBytes,
    groups,
    leftOut,
  }
}

function hasSmallNeighbours(manifests: readonly ManifestFile[], targetBytes: number): boolean {
  return manifests.some(({ manifestLength }, index) => {
    const next = manifests[index + 1]
    return next !== undefined && manifestLength + next.manifestLength <= targetBytes
  })
}

function bytesOf(manifests: readonly ManifestFile[]): number {
  return manifests.reduce((sum, { manifestLength }) => sum + manifestLength, 0)
}

function described(manifest: ManifestFile): PlannedManifestFile {
  const { manifestPath: path, manifestLength: bytes, addedFilesCount, existingFilesCount } = manifest
  const isCounted = addedFilesCount !== undefined && existingFilesCount !== undefined
  return { path, bytes, ...(isCounted && { files: addedFilesCount + existingFilesCount }) }
}
