import { ancestorsOf } from '../../metadata/ancestry.ts'
import type { Snapshot } from '../../metadata/snapshot.ts'
import type { TableMetadata } from '../../metadata/table-metadata.ts'

// Streaming writers keep their progress in the summaries of their snapshots. After a restart each walks back from the head
// of its branch, from parent to parent, to the newest snapshot that carries its progress. If the walk ends before that,
// the writer commits again what it has committed already, or fails. Maintenance pushes these snapshots down: each of its
// commits is one more on top. So the whole chain from the head to the newest carrier of each writer is kept.

/** A writer that finds its progress in a snapshot of a branch. */
export interface WriterProgress {
  /** For messages: "Flink job 4f2a…, operator 17". */
  readonly writer: string
  readonly branch: string
  /** The newest snapshot with its progress. */
  readonly snapshotId: bigint
  readonly timestampMs: number
}

const kafkaPrefix = 'kafka.connect.offsets.'

/** The writers whose progress a snapshot carries. */
function writersOf({ summary = {} }: Pick<Snapshot, 'summary'>): string[] {
  const writers: string[] = []
  const { 'flink.job-id': job, 'flink.operator-id': operator } = summary
  if (job !== undefined && summary['flink.max-committed-checkpoint-id'] !== undefined) {
    writers.push(`Flink job ${job}${operator === undefined ? '' : `, operator ${operator}`}`)
  }
  const query = summary['spark.sql.streaming.queryId']
  if (query !== undefined && summary['spark.sql.streaming.epochId'] !== undefined) {
    writers.push(`Spark streaming query ${query}`)
  }
  for (const key of Object.keys(summary)) {
    if (key.startsWith(kafkaPrefix)) writers.push(`Kafka Connect ${key.slice(kafkaPrefix.length)}`)
  }
  return writers
}

/** The newest carrier of each writer of a branch, not older than `sinceMs`; newest first. */
export function writersProgress(
  metadata: Pick<TableMetadata, 'snapshots'>,
  branch: string,
  head: bigint,
  sinceMs: number,
): WriterProgress[] {
  const found = new Map<string, WriterProgress>()
  for (const snapshot of ancestorsOf(metadata, head)) {
    const { snapshotId, timestampMs } = snapshot
    for (const writer of writersOf(snapshot)) {
      if (!found.has(writer)) found.set(writer, { writer, branch, snapshotId, timestampMs })
    }
  }
  return [...found.values()].filter(({ timestampMs }) => timestampMs >= sinceMs)
}
