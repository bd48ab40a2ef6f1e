import fc from 'fast-check'
import { expect, test } from 'vitest'
import { seedOfTheDay } from '../../../engine/test/seed.ts'
import {
  expireSnapshots,
  findSnapshot,
  manifestsOf,
  openTable,
  planExpireSnapshots,
  readManifest,
  type ExpireSnapshotsOptions,
  type LoadedTable,
  type Table,
  type TableMetadata,
} from '../../src/index.ts'
import { anyCommitFault, failingCommits } from '../commit/commit-faults.ts'
import { append, contentOf, dayMs, lake, reachableOf, sorted, type Lake } from './lake.ts'

// Random histories of branches, tags and streaming writers with expiries in between, and others that commit while an
// expiry is about to. The model is what each snapshot held when it was made. After every expiry each snapshot that is
// left holds the same, with every file in place; nothing is there that nothing reaches; refs and writers find what they
// need; and planning again finds nothing to do.
//
// FENCEPOST_HISTORIES says how many are tried, FENCEPOST_SEED which.

const numRuns = Number(process.env['FENCEPOST_HISTORIES'] ?? 40)
const path = process.env['FENCEPOST_PATH']

const summaries: readonly Record<string, string>[] = [
  {},
  { 'flink.job-id': 'a', 'flink.operator-id': 'x', 'flink.max-committed-checkpoint-id': '1' },
  { 'flink.job-id': 'b', 'flink.max-committed-checkpoint-id': '2' },
  { 'kafka.connect.offsets.t.g': '{}' },
  { 'spark.sql.streaming.queryId': 'q', 'spark.sql.streaming.epochId': '1' },
]

const kinds = ['append', 'append', 'append', 'delete', 'branch', 'tag', 'drop', 'set'] as const

const change = fc.record({
  do: fc.constantFrom(...kinds),
  pick: fc.nat(30),
  branch: fc.nat(5),
  writer: fc.nat(summaries.length - 1),
})
type Change = typeof change extends fc.Arbitrary<infer T> ? T : never

const expiry = fc.record({
  retainLast: fc.integer({ min: 1, max: 3 }),
  olderThan: fc.option(fc.nat(20)),
  afterDays: fc.constantFrom(6, 30),
  perCommit: fc.constantFrom(1, 2, 100),
  cleanExpiredMetadata: fc.boolean(),
  meanwhile: fc.option(change),
  faults: fc.array(fc.option(anyCommitFault, { freq: 4 }), { maxLength: 3 }),
})
type ExpiryStep = typeof expiry extends fc.Arbitrary<infer T> ? T : never

const history = fc.array(fc.tuple(fc.array(change, { minLength: 2, maxLength: 6 }), expiry), {
  minLength: 1,
  maxLength: 3,
})

const at = <T>(items: readonly T[], index: number): T | undefined => items[index % Math.max(1, items.length)]

class Model {
  readonly #lake: Lake
  /** The data files of each snapshot, when it was made. */
  readonly #files = new Map<bigint, string[]>()
  #names = 0

  constructor(made: Lake) {
    this.#lake = made
  }

  async change(table: Table, { do: what, pick, branch, writer }: Change): Promise<void> {
    await table.refresh()
    const { metadata } = table
    const branches = [...metadata.refs].filter(([, { type }]) => type === 'branch').map(([name]) => name)
    const on = at(branches, branch) ?? 'main'
    const some = at(metadata.snapshots, pick)?.snapshotId
    const name = `n${(this.#names += 1)}`
    if (what === 'append' || some === undefined) {
      await append({ ...this.#lake, table }, name, { branch: on, summary: summaries[writer] ?? {} })
    } else if (what === 'delete') {
      const file = at(await filesAt(table.loaded, metadata.refs.get(on)?.snapshotId), pick)
      if (file !== undefined) await table.deleteFiles([file], { branch: on })
    } else if (what === 'branch') {
      await table.createBranch(name, { snapshotId: some, ...(pick % 2 === 0 && { minSnapshotsToKeep: 2 }) })
    } else if (what === 'tag') {
      await table.createTag(name, { snapshotId: some, ...(pick % 3 === 0 && { maxRefAgeMs: BigInt(10 * dayMs) }) })
    } else if (what === 'drop') {
      const ref = at(
        [...metadata.refs.keys()].filter((one) => one !== 'main'),
        pick,
      )
      if (ref !== undefined) await table.dropRef(ref)
    } else await table.setSnapshot(some, { branch: on })
    for (const { snapshotId } of table.metadata.snapshots) {
      if (!this.#files.has(snapshotId)) this.#files.set(snapshotId, await filesAt(table.loaded, snapshotId))
    }
  }

  async expire(step: ExpiryStep): Promise<void> {
    const { table, other, catalog } = this.#lake
    await table.refresh()
    const now = new Date(Date.now() + step.afterDays * dayMs)
    const limit = step.olderThan === null ? undefined : at(table.metadata.snapshots, step.olderThan)?.timestampMs
    const options: ExpireSnapshotsOptions = {
      now,
      retainLast: step.retainLast,
      cleanExpiredMetadata: step.cleanExpiredMetadata,
      ...(limit !== undefined && { olderThan: new Date(limit) }),
    }
    const before = table.metadata
    let met = step.meanwhile === null
    const guard = async (): Promise<void> => {
      if (met || step.meanwhile === null) return
      met = true
      await this.change(other, step.meanwhile)
    }
    const faulty = failingCommits(catalog, step.faults)
    const pause = async (): Promise<void> => {}
    const run = { catalog: faulty, guard, pause, snapshotsPerCommit: step.perCommit }
    const outcome = await expireSnapshots(table.loaded, options, run).catch((error: unknown) => error)
    // A lost commit whose snapshots others hold by now might still arrive: nobody can tell, and nothing was deleted.
    if (outcome instanceof Error) expect(outcome).toMatchObject({ code: 'commit_unknown' })
    else await this.#checkFresh(table, step.meanwhile === null ? before : undefined, now)
    // What others did meanwhile may have made more of it old: once more, alone.
    await expireSnapshots(table.loaded, options, { catalog, snapshotsPerCommit: step.perCommit })
    await this.#checkFresh(table, undefined, now)
    const again = await planExpireSnapshots(table.loaded, options)
    expect(again).toMatchObject({ expired: [], removedRefs: [], files: {}, pendingLists: [] })
    expect(again.unused).toEqual({ schemaIds: [], specIds: [] })
  }

  async #checkFresh(table: Table, before: TableMetadata | undefined, now: Date): Promise<void> {
    await table.refresh()
    const { loaded, metadata } = table
    for (const { snapshotId } of metadata.snapshots) {
      expect(await filesAt(loaded, snapshotId), String(snapshotId)).toEqual(this.#files.get(snapshotId))
    }
    for (const [name, { snapshotId }] of metadata.refs) {
      expect(findSnapshot(metadata, snapshotId), name).toBeDefined()
    }
    expect(contentOf(this.#lake)).toEqual(sorted(await reachableOf(loaded)))
    if (before === undefined) return
    for (const [name, ref] of before.refs) {
      const isOld = now.getTime() - timeOf(before, ref.snapshotId) > Number(ref.maxRefAgeMs ?? Infinity)
      expect(metadata.refs.has(name), name).toBe(!isOld || name === 'main')
      if (ref.type === 'branch') expect(progressOf(metadata, name, now)).toEqual(progressOf(before, name, now))
    }
  }
}

function timeOf(metadata: TableMetadata, snapshotId: bigint): number {
  return findSnapshot(metadata, snapshotId)?.timestampMs ?? 0
}

/** What each writer finds that walks back from the head of a branch, as far as it is younger than 7 days. */
function progressOf(metadata: TableMetadata, branch: string, now: Date): Map<string, bigint> {
  const found = new Map<string, bigint>()
  for (let id = metadata.refs.get(branch)?.snapshotId; id !== undefined;) {
    const snapshot = findSnapshot(metadata, id)
    if (snapshot === undefined) break
    const { summary = {}, timestampMs } = snapshot
    const keys = Object.entries(summary).flatMap(([key, value]) => {
      if (key === 'flink.job-id' || key === 'spark.sql.streaming.queryId') return [`${key} ${value}`]
      return key.startsWith('kafka.connect.offsets.') ? [key] : []
    })
    for (const key of keys) if (!found.has(key)) found.set(key, snapshot.snapshotId)
    if (now.getTime() - timestampMs > 7 * dayMs) break
    id = snapshot.parentSnapshotId
  }
  return new Map([...found].filter(([, id]) => now.getTime() - timeOf(metadata, id) <= 7 * dayMs))
}

async function filesAt(loaded: LoadedTable, snapshotId: bigint | undefined): Promise<string[]> {
  const snapshot = snapshotId === undefined ? undefined : findSnapshot(loaded.metadata, snapshotId)
  if (snapshot === undefined) return []
  const files: string[] = []
  for (const manifest of await manifestsOf(loaded, snapshot)) {
    const entries = readManifest(await loaded.storage.read(manifest.manifestPath), manifest)
    files.push(...entries.map(({ file }) => file.filePath))
  }
  for (const file of files) await loaded.storage.size(file)
  return files.toSorted()
}

test(
  'any history with expiries keeps every snapshot that is needed whole',
  { timeout: 30_000 + numRuns * 4000 },
  async () => {
    await fc.assert(
      fc.asyncProperty(history, fc.constantFrom('2', '100'), async (rounds, minCountToMerge) => {
        const made = await lake({
          properties: { 'commit.manifest.min-count-to-merge': minCountToMerge, 'commit.status-check.min-wait-ms': '1' },
        })
        const model = new Model({ ...made, other: await openTable(made.catalog, made.table.loaded.identifier) })
        for (const [changes, step] of rounds) {
          for (const one of changes) await model.change(made.table, one)
          await model.expire(step)
        }
      }),
      { numRuns, seed: seedOfTheDay(), ...(path !== undefined && { path }) },
    )
  },
)
