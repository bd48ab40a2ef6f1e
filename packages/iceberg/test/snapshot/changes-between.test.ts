import { expect, test } from 'vitest'
import { changesBetween, fileKey, type FormatVersion, type Table } from '../../src/index.ts'
import { bed, entriesOf, field } from '../write/bed.ts'

const at = bed()

/** A table with a snapshot of every kind; its manifests are merged on the way. */
async function tableOf(formatVersion: FormatVersion): Promise<Table> {
  const table = await at.newTable({
    formatVersion,
    schema: { fields: [field(1, 'id', { type: 'int' }), field(2, 'p', { type: 'string' })] },
    partitionSpec: { fields: [{ fieldId: 1000, sourceId: 2, name: 'p', transform: { name: 'identity' } }] },
    properties: { 'commit.manifest.min-count-to-merge': '2' },
  })
  await table.append([
    { id: 1, p: 'a' },
    { id: 2, p: 'b' },
  ])
  await table.append([{ id: 3, p: 'a' }])
  const [first] = await entriesOf(table)
  if (formatVersion > 1) {
    await table.deletePositions(new Map([[first?.file.filePath ?? '', [0]]]))
    await table.deleteEqual(['id', 'p'], [{ id: 3, p: 'a' }], { append: [{ id: 4, p: 'a' }] })
  }
  await table.overwrite([{ id: 5, p: 'b' }], { replace: 'partitions' })
  await table.deleteFiles((entry) => entry.file.partition[0] === 'a' && entry.file.recordCount === 1)
  return table
}

async function liveIn(table: Table, snapshotId: bigint): Promise<Set<string>> {
  const { metadata } = table.loaded
  const loaded = { ...table.loaded, metadata: { ...metadata, currentSnapshotId: snapshotId } }
  return new Set((await entriesOf({ loaded } as Table)).map(({ file }) => fileKey(file)))
}

test.each([1, 2, 3] as const)(
  'what changed between any two snapshots of a v%i table leads from one to the other',
  async (version) => {
    const table = await tableOf(version)
    const ids = table.metadata.snapshots.map(({ snapshotId }) => snapshotId)
    for (const [start, from] of [undefined, ...ids].entries()) {
      for (const to of ids.slice(Math.max(0, start - 1))) {
        const live = from === undefined ? new Set<string>() : await liveIn(table, from)
        for await (const { snapshot, manifest, entries } of changesBetween(table.loaded, from, to)) {
          expect(manifest.addedSnapshotId).toBe(snapshot.snapshotId)
          for (const { status, file } of entries) {
            expect(live.has(fileKey(file)), file.filePath).toBe(status === 'deleted')
            if (status === 'deleted') live.delete(fileKey(file))
            else live.add(fileKey(file))
          }
        }
        expect(live).toEqual(await liveIn(table, to))
      }
    }
  },
)

test('a chain that was expired, or leads elsewhere, is refused', async () => {
  const table = await tableOf(2)
  const [first, second, third] = table.metadata.snapshots
  const { loaded } = table
  const without = { ...loaded, metadata: { ...loaded.metadata, snapshots: loaded.metadata.snapshots.slice(1) } }
  const changes = async (given: typeof loaded, from: bigint | undefined, to = 0n) => {
    let entries = 0
    for await (const change of changesBetween(given, from, to)) entries += change.entries.length
    return entries
  }
  await expect(changes(without, undefined, third?.snapshotId)).rejects.toThrow(
    `${first?.snapshotId}, which came before`,
  )
  await expect(changes(loaded, third?.snapshotId, second?.snapshotId)).rejects.toThrow('is not among those before')
  await expect(changes(loaded, undefined, 1n)).rejects.toThrow('snapshot 1 is not in the table')
  expect(await changes(without, second?.snapshotId, third?.snapshotId)).toBe(1)
})
