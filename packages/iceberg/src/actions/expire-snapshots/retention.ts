import { ancestorsOf } from '../../metadata/ancestry.ts'
import { mainBranch, type TableMetadata } from '../../metadata/table-metadata.ts'
import { writersProgress } from './writers-progress.ts'

// Which snapshots and refs of a table go, and why. A pure function of the metadata and of the settings of a plan: the
// plan, and every commit that carries it out, decide by the same settings, each on the table as it is then.
//
// A branch keeps its head, and from there on each snapshot while it is among the newest so many of the branch or young
// enough; the first that is neither ends the branch. What a branch says itself comes before what the caller says. A tag
// keeps its snapshot only. Snapshots that no ref reaches are kept while they are young.

export interface RetentionSettings {
  /** The present time, by which refs are aged. */
  readonly nowMs: number
  readonly olderThanMs: number
  readonly retainLast: number
  /** Infinity: refs without a setting of their own do not age. */
  readonly maxRefAgeMs: number
  /** Snapshots to go whatever their age. */
  readonly snapshotIds: ReadonlySet<bigint>
  /** Only these refs may go, while they are at these snapshots. Default: all. */
  readonly removableRefs?: ReadonlyMap<string, bigint>
  /** How long the progress of a writer that has not committed since is kept; 0: not at all. */
  readonly writerProgressMs: number
}

export interface KeptSnapshot {
  readonly snapshotId: bigint
  /** Each with what it is about: "head of branch main". */
  readonly reasons: readonly string[]
}

export interface ExpiredSnapshot {
  readonly snapshotId: bigint
  readonly reason: string
}

export interface RemovedRef {
  readonly name: string
  readonly type: 'branch' | 'tag'
  readonly snapshotId: bigint
  readonly reason: string
}

export interface Retention {
  readonly kept: readonly KeptSnapshot[]
  /** Oldest first, as the table lists them. */
  readonly expired: readonly ExpiredSnapshot[]
  readonly removedRefs: readonly RemovedRef[]
  /** Snapshots that were asked for by id and cannot go, each with what holds it. */
  readonly held: ReadonlyMap<bigint, string>
}

export function decideRetention(metadata: TableMetadata, settings: RetentionSettings): Retention {
  const reasons = new Map<bigint, string[]>()
  const keep = (snapshotId: bigint, reason: string): void => {
    const known = reasons.get(snapshotId)
    if (known === undefined) reasons.set(snapshotId, [reason])
    else if (known.at(-1) !== reason) known.push(reason)
  }
  const held = new Map<bigint, string>()
  const removedRefs = refsToRemove(metadata, settings)
  const removed = new Set(removedRefs.map(({ name }) => name))
  const referenced = new Set<bigint>()
  for (const [name, ref] of metadata.refs) {
    if (removed.has(name)) continue
    keep(ref.snapshotId, ref.type === 'tag' ? `tag ${name}` : `head of branch ${name}`)
    held.set(ref.snapshotId, `${ref.type} ${name}`)
    if (ref.type === 'tag') referenced.add(ref.snapshotId)
    else keepBranch(metadata, settings, name, { keep, held, referenced })
  }
  for (const { snapshotId, timestampMs } of metadata.snapshots) {
    if (!referenced.has(snapshotId) && timestampMs >= settings.olderThanMs) keep(snapshotId, 'young, in no branch')
  }
  return { ...split(metadata, settings, reasons, held), removedRefs, held }
}

function split(
  { snapshots }: TableMetadata,
  { snapshotIds }: RetentionSettings,
  reasons: ReadonlyMap<bigint, readonly string[]>,
  held: ReadonlyMap<bigint, string>,
): Pick<Retention, 'kept' | 'expired'> {
  const kept: KeptSnapshot[] = []
  const expired: ExpiredSnapshot[] = []
  for (const { snapshotId } of snapshots) {
    const why = reasons.get(snapshotId)
    const isNamed = snapshotIds.has(snapshotId) && !held.has(snapshotId)
    if (isNamed) expired.push({ snapshotId, reason: 'named' })
    else if (why === undefined) expired.push({ snapshotId, reason: 'old' })
    else kept.push({ snapshotId, reasons: why })
  }
  return { kept, expired }
}

function keepBranch(
  metadata: TableMetadata,
  settings: RetentionSettings,
  name: string,
  into: { keep: (id: bigint, reason: string) => void; held: Map<bigint, string>; referenced: Set<bigint> },
): void {
  const ref = metadata.refs.get(name)
  if (ref === undefined) return
  const { nowMs, writerProgressMs } = settings
  const minSnapshots = ref.minSnapshotsToKeep ?? settings.retainLast
  const oldest = ref.maxSnapshotAgeMs === undefined ? settings.olderThanMs : nowMs - Number(ref.maxSnapshotAgeMs)
  const writers =
    writerProgressMs === 0 ? [] : writersProgress(metadata, name, ref.snapshotId, nowMs - writerProgressMs)
  const pinned = new Set(writers.map(({ snapshotId }) => snapshotId))
  let count = 0
  let open = true
  for (const { snapshotId, timestampMs } of ancestorsOf(metadata, ref.snapshotId)) {
    into.referenced.add(snapshotId)
    if (open && count < minSnapshots) into.keep(snapshotId, `among the last ${minSnapshots} of branch ${name}`)
    else if (open && timestampMs >= oldest) into.keep(snapshotId, `young, in branch ${name}`)
    else open = false
    if (open) count += 1
    if (pinned.size === 0) continue
    const next = writers.find((one) => pinned.has(one.snapshotId))
    const why = `on the way from branch ${name} to the progress of ${next?.writer ?? 'a writer'}`
    into.keep(snapshotId, why)
    if (!into.held.has(snapshotId)) into.held.set(snapshotId, why)
    pinned.delete(snapshotId)
  }
}

/** Refs that are too old, by the age of their snapshot, or whose snapshot is gone. Never main. */
function refsToRemove(metadata: TableMetadata, { nowMs, maxRefAgeMs, removableRefs }: RetentionSettings): RemovedRef[] {
  const removed: RemovedRef[] = []
  const times = new Map(metadata.snapshots.map(({ snapshotId, timestampMs }) => [snapshotId, timestampMs]))
  for (const [name, { type, snapshotId, maxRefAgeMs: own }] of metadata.refs) {
    if (name === mainBranch) continue
    if (removableRefs !== undefined && removableRefs.get(name) !== snapshotId) continue
    const timestampMs = times.get(snapshotId)
    const maxAge = own === undefined ? maxRefAgeMs : Number(own)
    if (timestampMs === undefined) removed.push({ name, type, snapshotId, reason: 'its snapshot is gone' })
    else if (nowMs - timestampMs > maxAge) removed.push({ name, type, snapshotId, reason: 'too old' })
  }
  return removed
}
