import type { TableMetadata } from '../../metadata/table-metadata.ts'
import type { ScanFile } from '../../scan/plan.ts'

/**
 * Partitions that writers have committed to lately: they are likely to do so again, and their deletes would be in vain
 * for files that are rewritten meanwhile. What maintenance rewrote (`replace`) does not count.
 */
export class YoungPartitions {
  readonly #since: number
  readonly #bySnapshot = new Set<bigint>()
  readonly #bySequence = new Set<bigint>()
  readonly #young = new Set<string>()

  /** Without a limit nothing is young. */
  constructor(metadata: TableMetadata, minutes: number, nowMs: number = Date.now()) {
    this.#since = nowMs - minutes * 60_000
    for (const { snapshotId, sequenceNumber, timestampMs, summary } of minutes === 0 ? [] : metadata.snapshots) {
      if (timestampMs < this.#since || summary?.['operation'] === 'replace') continue
      this.#bySnapshot.add(snapshotId)
      if (sequenceNumber !== undefined && metadata.formatVersion > 1) this.#bySequence.add(sequenceNumber)
    }
  }

  note(key: string, { snapshotId, deletes }: ScanFile): void {
    if (this.#bySnapshot.size === 0 || this.#young.has(key)) return
    const applied = [
      ...deletes.positions,
      ...deletes.equality,
      ...(deletes.vector === undefined ? [] : [deletes.vector]),
    ]
    const isYoung =
      this.#bySnapshot.has(snapshotId) || applied.some(({ sequenceNumber }) => this.#bySequence.has(sequenceNumber))
    if (isYoung) this.#young.add(key)
  }

  has(key: string): boolean {
    return this.#young.has(key)
  }
}
