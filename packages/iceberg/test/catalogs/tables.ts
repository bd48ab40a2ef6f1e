import { randomBytes } from 'node:crypto'
import type { BuiltCommit } from '../../src/commit/index.ts'
import { mainBranch, type LoadedTable, type NewTable } from '../../src/index.ts'

export const newTable: NewTable = {
  schema: {
    fields: [
      { id: 1, name: 'id', required: true, type: { type: 'long' } },
      { id: 2, name: 'at', required: false, type: { type: 'timestamptz' } },
    ],
  },
  partitionSpec: { fields: [{ fieldId: 1000, sourceId: 2, name: 'day', transform: { name: 'day' } }] },
  properties: { owner: 'tests', 'commit.retry.num-retries': '4', 'commit.retry.min-wait-ms': '1' },
}

function newSnapshotId(): bigint {
  return BigInt.asUintN(63, randomBytes(8).readBigUInt64BE())
}

/** Appends an empty snapshot to main: a file of its own, and the requirements and updates that any append has. */
export async function buildAppend(table: LoadedTable, note = 'test'): Promise<BuiltCommit & { snapshotId: bigint }> {
  const { metadata, storage } = table
  const snapshotId = newSnapshotId()
  const parent = metadata.refs.get(mainBranch)?.snapshotId
  const manifestList = `${metadata.location}/metadata/snap-${snapshotId}.avro`
  await storage.write(manifestList, Buffer.from('a manifest list'))
  return {
    snapshotId,
    files: [manifestList],
    requirements: [
      { type: 'assert-table-uuid', uuid: metadata.tableUuid ?? '' },
      { type: 'assert-ref-snapshot-id', ref: mainBranch, snapshotId: parent ?? null },
    ],
    updates: [
      {
        action: 'add-snapshot',
        snapshot: {
          snapshotId,
          ...(parent !== undefined && { parentSnapshotId: parent }),
          sequenceNumber: metadata.lastSequenceNumber + 1n,
          timestampMs: Math.max(Date.now(), metadata.lastUpdatedMs),
          manifestList,
          summary: { operation: 'append', note },
          schemaId: metadata.currentSchemaId,
        },
      },
      { action: 'set-snapshot-ref', refName: mainBranch, ref: { snapshotId, type: 'branch' } },
    ],
  }
}

/** The snapshots of main, newest first. */
export function chainOf({ metadata }: LoadedTable): bigint[] {
  const chain: bigint[] = []
  for (let id = metadata.currentSnapshotId; id !== undefined;) {
    chain.push(id)
    const at = id
    id = metadata.snapshots.find((s) => s.snapshotId === at)?.parentSnapshotId
  }
  return chain
}
