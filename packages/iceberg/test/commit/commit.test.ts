import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import {
  commitTable,
  HadoopCatalog,
  IcebergError,
  LocalStorage,
  showsUpdates,
  type Catalog,
  type CommitRequest,
  type CommitResult,
  type LoadedTable,
  type TableIdentifier,
} from '../../src/index.ts'
import { buildAppend, chainOf, newTable } from '../catalogs/tables.ts'

let root: string
let count = 0
let sound: HadoopCatalog
beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), 'fencepost-commit-'))
})
afterAll(() => rm(root, { recursive: true, force: true }))

const identifier: TableIdentifier = { namespace: ['db'], name: 't' }
const storage = new LocalStorage()
const pause = async (): Promise<void> => {}
beforeEach(async () => {
  sound = new HadoopCatalog({ name: 'files', warehouse: `${root}/${(count += 1)}` })
  await sound.createNamespace(['db'])
  await sound.createTable(identifier, newTable)
})

type Commit = (table: LoadedTable, request: CommitRequest, n: number) => Promise<CommitResult>

/** The sound catalog with another way to commit. */
function committing(commit: Commit): Catalog {
  let n = 0
  return new Proxy<Catalog>(sound, {
    get(target, key) {
      if (key === 'commit') return (t: LoadedTable, r: CommitRequest) => commit(t, r, (n += 1))
      const value = Reflect.get(target, key) as unknown
      return typeof value === 'function' ? value.bind(target) : value
    },
  })
}

const unknown: CommitResult = { outcome: 'unknown', error: new IcebergError('commit_unknown', 'no answer') }
const commitBy = async (others: string): Promise<void> => {
  const now = await sound.loadTable(identifier)
  await sound.commit(now, await buildAppend(now, others))
}
const setProperties = async (updates: Record<string, string>): Promise<void> => {
  const now = await sound.loadTable(identifier)
  await sound.commit(now, { requirements: [], updates: [{ action: 'set-properties', updates }] })
}
const exists = (files: readonly string[]): Promise<boolean[]> => Promise.all(files.map((f) => storage.exists(f)))

/** Builds appends, and remembers every file of every try. */
function appends(before?: (attempt: number) => Promise<void>) {
  const files: string[] = []
  const ids: bigint[] = []
  const build = async (table: LoadedTable, attempt: number) => {
    const built = await buildAppend(table, 'ours')
    files.push(...built.files)
    ids.push(built.snapshotId)
    await before?.(attempt)
    return built
  }
  return { build, files, ids }
}

describe('a commit', () => {
  test('is built again from the fresh table after a conflict, and leaves nothing of the lost tries', async () => {
    const { build, files, ids } = appends(async (attempt) => {
      if (attempt <= 2) await commitBy('theirs')
    })
    const outcome = await commitTable(sound, identifier, build, { pause })
    expect(outcome).toMatchObject({ outcome: 'applied', attempts: 3 })
    expect(await exists(files)).toEqual([false, false, true])
    expect(chainOf(await sound.loadTable(identifier))[0]).toBe(ids[2])
  })

  test('gives up after as many tries as the table says, and removes all it made', async () => {
    const { build, files } = appends(() => commitBy('theirs'))
    const outcome = await commitTable(sound, identifier, build, { pause })
    expect(outcome).toMatchObject({ outcome: 'not_applied', why: 'conflict', attempts: 5, leftOver: [] })
    expect(await exists(files)).toEqual([false, false, false, false, false])
  })

  test('a file that several tries use is kept when the last of them is applied', async () => {
    const shared = `${root}/${count}/shared.avro`
    await storage.write(shared, Buffer.from('x'))
    const { build } = appends(async (attempt) => {
      if (attempt === 1) await commitBy('theirs')
    })
    const outcome = await commitTable(
      sound,
      identifier,
      async (t, n) => {
        const built = await build(t, n)
        return { ...built, files: [...built.files, shared] }
      },
      { pause },
    )
    expect(outcome.outcome).toBe('applied')
    expect(await storage.exists(shared)).toBe(true)
  })

  test('that its guard refuses is not tried again, and its files are removed', async () => {
    const { build, files } = appends()
    const guard = async (): Promise<void> => {
      throw new Error('the fence is lost')
    }
    const outcome = await commitTable(sound, identifier, build, { guard, pause })
    expect(outcome).toMatchObject({ outcome: 'not_applied', why: 'refused', attempts: 1 })
    expect(await exists(files)).toEqual([false])
  })

  test('with nothing left to do changes nothing', async () => {
    const before = await sound.loadTable(identifier)
    const outcome = await commitTable(sound, identifier, async () => undefined, { pause })
    expect(outcome).toMatchObject({ outcome: 'not_applied', why: 'nothing_to_do' })
    expect((await sound.loadTable(identifier)).metadataLocation).toBe(before.metadataLocation)
  })

  test('an error of the builder is thrown, and earlier tries are cleaned up', async () => {
    const { build, files } = appends(() => commitBy('theirs'))
    const failing = commitTable(
      sound,
      identifier,
      async (t, n) => {
        if (n === 2) throw new Error('the rows have changed')
        return build(t, n)
      },
      { pause },
    )
    await expect(failing).rejects.toThrow('the rows have changed')
    expect(await exists(files)).toEqual([false])
  })

  test('that a catalog refuses by throwing is not applied, and its files are removed', async () => {
    const catalog = committing(async () => {
      throw new IcebergError('catalog_unsupported', 'only reads')
    })
    const { build, files } = appends()
    const outcome = await commitTable(catalog, identifier, build, { pause })
    expect(outcome).toMatchObject({ outcome: 'not_applied', why: 'rejected', error: { code: 'catalog_unsupported' } })
    expect(await exists(files)).toEqual([false])
  })

  test('does not go into another table that has the name by now', async () => {
    const { build, files } = appends(() => commitBy('theirs'))
    let loads = 0
    const loadTable = async (): Promise<LoadedTable> => {
      const table = await sound.loadTable(identifier)
      return (loads += 1) === 1 ? table : { ...table, metadata: { ...table.metadata, tableUuid: 'another' } }
    }
    const catalog = new Proxy<Catalog>(committing(sound.commit.bind(sound)), {
      get: (target, key) => (key === 'loadTable' ? loadTable : (Reflect.get(target, key) as unknown)),
    })
    await expect(commitTable(catalog, identifier, build, { pause })).rejects.toMatchObject({
      code: 'requirement_failed',
    })
    // Nobody can look whether the table that was dropped has them, and it may come back.
    expect(await exists(files)).toEqual([true])
    await expect(
      commitTable(sound, identifier, build, { pause, tableUuid: 'the one that rows were written for' }),
    ).rejects.toMatchObject({ code: 'requirement_failed' })
    expect(files).toHaveLength(1)
  })

  test('that is called off does not wait for a load that does not end', async () => {
    const controller = new AbortController()
    const loadTable = (): Promise<LoadedTable> => {
      controller.abort()
      return new Promise(() => {})
    }
    const catalog = new Proxy<Catalog>(sound, {
      get: (target, key) => (key === 'loadTable' ? loadTable : (Reflect.get(target, key) as unknown)),
    })
    const { signal } = controller
    await expect(commitTable(catalog, identifier, appends().build, { signal })).rejects.toThrow('aborted')
  })

  test('that is called off does not wait for its next try', async () => {
    const table = await sound.loadTable(identifier)
    const updates = [{ action: 'set-properties', updates: { 'commit.retry.min-wait-ms': '600000' } }] as const
    await sound.commit(table, { requirements: [], updates })
    const controller = new AbortController()
    const { build, files } = appends(async () => {
      await commitBy('theirs')
      controller.abort()
    })
    const { signal } = controller
    await expect(commitTable(sound, identifier, build, { signal })).rejects.toThrow('aborted')
    expect(await exists(files)).toEqual([false])
  })
})

describe('a commit of unknown outcome', () => {
  test('that was applied is found by its snapshot', async () => {
    const catalog = committing(async (t, r) => (await sound.commit(t, r), unknown))
    const { build, files } = appends()
    expect(await commitTable(catalog, identifier, build, { pause })).toMatchObject({ outcome: 'applied', attempts: 1 })
    expect(await exists(files)).toEqual([true])
  })

  test('that was applied is found though others have committed since', async () => {
    const catalog = committing(async (t, r) => {
      await sound.commit(t, r)
      await commitBy('theirs')
      return unknown
    })
    const { build, ids } = appends()
    expect((await commitTable(catalog, identifier, build, { pause })).outcome).toBe('applied')
    expect(chainOf(await sound.loadTable(identifier))).toContain(ids[0])
  })

  test('that was applied and whose snapshot was expired since is found in the history', async () => {
    const catalog = committing(async (t, r) => {
      await sound.commit(t, r)
      const ours = (await sound.loadTable(identifier)).metadata.currentSnapshotId ?? 0n
      await commitBy('theirs')
      const now = await sound.loadTable(identifier)
      const updates = [{ action: 'remove-snapshots', snapshotIds: [ours] }] as const
      await sound.commit(now, { requirements: [], updates })
      return unknown
    })
    expect((await commitTable(catalog, identifier, appends().build, { pause })).outcome).toBe('applied')
  })

  test('that was not applied is sent again, the very same, and applied once', async () => {
    const keys: (string | undefined)[] = []
    const catalog = committing(async (t, r, n) => {
      keys.push(r.idempotencyKey)
      return n === 1 ? unknown : sound.commit(t, r)
    })
    const { build, ids } = appends()
    expect(await commitTable(catalog, identifier, build, { pause })).toMatchObject({ outcome: 'applied', attempts: 1 })
    expect(chainOf(await sound.loadTable(identifier))).toEqual(ids)
    expect(new Set(keys).size).toBe(1)
  })

  test('that arrives late, while it is being sent again, is applied once', async () => {
    let late: (() => Promise<unknown>) | undefined
    const catalog = committing(async (t, r, n) => {
      if (n > 1) {
        await late?.()
        return sound.commit(t, r)
      }
      late = () => sound.commit(t, r)
      return unknown
    })
    const { build, ids, files } = appends()
    expect((await commitTable(catalog, identifier, build, { pause })).outcome).toBe('applied')
    expect(chainOf(await sound.loadTable(identifier))).toEqual(ids)
    expect(await exists(files)).toEqual([true])
  })

  test('that others have overtaken is built anew, and its files stay', async () => {
    const catalog = committing(async (t, r, n) => {
      if (n > 1) return sound.commit(t, r)
      await commitBy('theirs')
      return unknown
    })
    const { build, files, ids } = appends()
    expect(await commitTable(catalog, identifier, build, { pause })).toMatchObject({ outcome: 'applied', attempts: 2 })
    expect(await exists(files)).toEqual([true, true])
    expect(chainOf(await sound.loadTable(identifier))[0]).toBe(ids[1])
  })

  test('that cannot be found out stays unknown, and nothing is removed', async () => {
    const catalog = committing(async () => unknown)
    const { build, files } = appends()
    const outcome = await commitTable(catalog, identifier, build, { pause })
    expect(outcome).toMatchObject({ outcome: 'unknown', files, error: { code: 'commit_unknown' } })
    expect(await exists(files)).toEqual([true])
  })

  test('is not sent again past its guard', async () => {
    let asked = 0
    const catalog = committing(async (t, r, n) => (n === 1 ? unknown : sound.commit(t, r)))
    const guard = async (): Promise<void> => {
      asked += 1
      throw new Error('the fence is lost')
    }
    const { build, files } = appends()
    expect((await commitTable(catalog, identifier, build, { guard, pause })).outcome).toBe('unknown')
    expect(asked).toBe(1)
    expect(await exists(files)).toEqual([true])
    expect((await sound.loadTable(identifier)).metadata.snapshots).toEqual([])
  })

  test('that others have overtaken on another branch is built anew', async () => {
    await commitBy('first')
    const catalog = committing(async (t, r, n) => {
      if (n > 1) return sound.commit(t, r)
      const now = await sound.loadTable(identifier)
      const { updates, ...built } = await buildAppend(now, 'theirs')
      const toBranch = updates.map((u) => (u.action === 'set-snapshot-ref' ? { ...u, refName: 'other' } : u))
      await sound.commit(now, { ...built, updates: toBranch })
      return unknown
    })
    const { build, ids } = appends()
    expect(await commitTable(catalog, identifier, build, { pause })).toMatchObject({ outcome: 'applied', attempts: 2 })
    expect(chainOf(await sound.loadTable(identifier))[0]).toBe(ids[1])
  })

  test('that ended in an error nobody knows is looked for, and the files it shares with lost tries stay', async () => {
    const shared = `${root}/${count}/shared.avro`
    await storage.write(shared, Buffer.from('x'))
    const catalog = committing(async (t, r, n) => {
      const result = await sound.commit(t, r)
      if (n === 2) throw new TypeError('a bug')
      return result
    })
    const { build, ids } = appends(async (attempt) => {
      if (attempt === 1) await commitBy('theirs')
    })
    const sharing = async (t: LoadedTable, n: number) => {
      const built = await build(t, n)
      return { ...built, files: [...built.files, shared] }
    }
    expect((await commitTable(catalog, identifier, sharing, { pause })).outcome).toBe('applied')
    expect(chainOf(await sound.loadTable(identifier))[0]).toBe(ids[1])
    expect(await storage.exists(shared)).toBe(true)
  })

  test('that arrives while the guard refuses to send it again is found', async () => {
    let late: (() => Promise<unknown>) | undefined
    const error = new IcebergError('commit_refused', 'the fence is lost')
    const catalog = committing(async (t, r, n) => {
      if (n === 1) late = () => sound.commit(t, r)
      else await late?.()
      return n === 1 ? unknown : { outcome: 'not_applied', why: 'refused', error }
    })
    expect((await commitTable(catalog, identifier, appends().build, { pause })).outcome).toBe('applied')
  })

  test('stays unknown when the table was dropped and another has its name', async () => {
    const catalog = committing(async (t, r) => {
      await sound.commit(t, r)
      await sound.dropTable(identifier, { purge: true })
      await sound.createTable(identifier, newTable)
      return unknown
    })
    expect((await commitTable(catalog, identifier, appends().build, { pause })).outcome).toBe('unknown')
    expect((await sound.loadTable(identifier)).metadata.snapshots).toEqual([])
  })

  test('of a ref that is there, but is to be kept for another time, is not taken for applied', async () => {
    await commitBy('first')
    const { metadata } = await sound.loadTable(identifier)
    const ref = { snapshotId: metadata.currentSnapshotId ?? 0n, type: 'branch' } as const
    const set = (more: object) => [{ action: 'set-snapshot-ref', refName: 'main', ref: { ...ref, ...more } } as const]
    expect(showsUpdates(metadata, set({}))).toBe(true)
    expect(showsUpdates(metadata, set({ maxRefAgeMs: 5n }))).toBe(false)
    expect(showsUpdates(metadata, set({ minSnapshotsToKeep: 5 }))).toBe(false)
  })

  test('without a snapshot is found by its effect', async () => {
    const catalog = committing(async (t, r) => (await sound.commit(t, r), unknown))
    const build = async () => ({
      files: [],
      requirements: [],
      updates: [{ action: 'set-properties', updates: { a: 'b' } } as const],
    })
    expect((await commitTable(catalog, identifier, build, { pause })).outcome).toBe('applied')
  })
})

describe('a commit that was applied though the catalog denies it', () => {
  const denied = (why: 'conflict' | 'unavailable' | 'rejected'): CommitResult => ({
    outcome: 'not_applied',
    why,
    error: new IcebergError('commit_conflict', 'the second copy of a request was refused'),
  })

  test.each(['conflict', 'unavailable', 'rejected'] as const)('is found, and not made twice: %s', async (why) => {
    const catalog = committing(async (t, r, n) => {
      const result = await sound.commit(t, r)
      return n === 1 ? denied(why) : result
    })
    const { build, files, ids } = appends()
    const outcome = await commitTable(catalog, identifier, build, { pause })
    expect(outcome).toMatchObject({ outcome: 'applied', built: { snapshotId: ids[0] } })
    expect(chainOf(await sound.loadTable(identifier))).toEqual([ids[0]])
    expect(await exists(files)).toEqual([true])
  })

  test('is found though others have committed on it, and though it was the last try', async () => {
    const catalog = committing(async (t, r) => {
      await sound.commit(t, r)
      await commitBy('theirs')
      return denied('conflict')
    })
    await setProperties({ 'commit.retry.num-retries': '0' })
    const { build, files, ids } = appends()
    expect((await commitTable(catalog, identifier, build, { pause })).outcome).toBe('applied')
    expect(chainOf(await sound.loadTable(identifier))).toHaveLength(2)
    expect(chainOf(await sound.loadTable(identifier))[1]).toBe(ids[0])
    expect(await exists(files)).toEqual([true])
  })

  test('is found when the builder fails on the table that has it', async () => {
    let late: (() => Promise<unknown>) | undefined
    const catalog = committing(async (t, r) => {
      late = () => sound.commit(t, r)
      return denied('unavailable')
    })
    const { build, files } = appends()
    const failing = async (t: LoadedTable, n: number) => {
      if (n === 1) return build(t, n)
      await late?.()
      throw new Error('the rows have changed')
    }
    // The table that the builder got did not show it, so its files are removed only after one more look.
    const outcome = await commitTable(catalog, identifier, failing, { pause }).catch((error: unknown) => error)
    expect(outcome).toMatchObject({ outcome: 'applied' })
    expect(await exists(files)).toEqual([true])
  })

  test('keeps its files when nobody can look', async () => {
    let down = false
    const catalog = new Proxy<Catalog>(
      committing(async (t, r) => {
        await sound.commit(t, r)
        down = true
        return denied('conflict')
      }),
      {
        get: (target, key) => {
          if (key !== 'loadTable' || !down) return Reflect.get(target, key) as unknown
          return () => Promise.reject(new IcebergError('catalog_unavailable', 'down'))
        },
      },
    )
    const { build, files } = appends()
    const outcome = await commitTable(catalog, identifier, build, { pause })
    expect(outcome).toMatchObject({ outcome: 'unknown', files, error: { code: 'commit_unknown' } })
    expect(await exists(files)).toEqual([true])
  })

  /** Answers a commit as a gateway does whose first copy of the request is still under way. */
  const lockHeld = (why: 'conflict' | 'unavailable', final = false) => {
    const copies: (() => Promise<CommitResult>)[] = []
    const catalog = committing(async (t, r) => {
      copies.push(() => sound.commit(t, r))
      return { ...denied(why), ...(final && { final }) }
    })
    return { catalog, copies }
  }

  test.each(['conflict', 'unavailable'] as const)(
    'later, when the tries have ended, finds its files: %s',
    async (why) => {
      const { catalog, copies } = lockHeld(why)
      const { build, files, ids } = appends()
      const outcome = await commitTable(catalog, identifier, build, { pause })
      expect(outcome).toMatchObject({ outcome: 'unknown', attempts: 5, files })
      expect((await copies[0]?.())?.outcome).toBe('applied')
      expect(chainOf(await sound.loadTable(identifier))).toEqual([ids[0]])
      expect((await exists(files))[0]).toBe(true)
    },
  )

  test('is cleaned up when the catalog rules out that it is applied later', async () => {
    const { catalog } = lockHeld('conflict', true)
    const { build, files } = appends()
    expect(await commitTable(catalog, identifier, build, { pause })).toMatchObject({ outcome: 'not_applied' })
    expect(await exists(files)).toEqual(files.map(() => false))
  })

  test('leaves no files when the next try is applied, after which it cannot be', async () => {
    const catalog = committing(async (t, r, n) => (n === 1 ? denied('conflict') : sound.commit(t, r)))
    const { build, files } = appends()
    expect(await commitTable(catalog, identifier, build, { pause })).toMatchObject({ outcome: 'applied', attempts: 2 })
    expect(await exists(files)).toEqual([false, true])
  })

  test('a rollback that others have committed on is not done a second time', async () => {
    await commitBy('first')
    const target = (await sound.loadTable(identifier)).metadata.currentSnapshotId ?? 0n
    await commitBy('second')
    const catalog = committing(async (t, r) => {
      await sound.commit(t, r)
      await commitBy('theirs')
      return denied('conflict')
    })
    const build = async ({ metadata }: LoadedTable) => ({
      files: [],
      requirements: [
        { type: 'assert-ref-snapshot-id', ref: 'main', snapshotId: metadata.currentSnapshotId ?? null } as const,
      ],
      updates: [{ action: 'set-snapshot-ref', refName: 'main', ref: { type: 'branch', snapshotId: target } } as const],
    })
    expect((await commitTable(catalog, identifier, build, { pause })).outcome).toBe('applied')
    const { metadata } = await sound.loadTable(identifier)
    expect(metadata.snapshots.find((s) => s.snapshotId === metadata.currentSnapshotId)?.summary?.['note']).toBe(
      'theirs',
    )
  })
})

describe('a commit of unknown outcome, when the table has changed,', () => {
  /** Expires everything but what a ref holds, as it is planned on the loaded table. */
  const expire = async ({ metadata }: LoadedTable) => {
    const held = new Set([...metadata.refs.values()].map((ref) => ref.snapshotId))
    const snapshotIds = metadata.snapshots.map((s) => s.snapshotId).filter((id) => !held.has(id))
    if (snapshotIds.length === 0) return undefined
    return {
      files: [],
      requirements: [...metadata.refs].map(
        ([ref, { snapshotId }]) => ({ type: 'assert-ref-snapshot-id', ref, snapshotId }) as const,
      ),
      updates: [{ action: 'remove-snapshots', snapshotIds } as const],
    }
  }

  test('is planned again: an expiry does not take along a snapshot that was tagged meanwhile', async () => {
    await commitBy('first')
    const first = (await sound.loadTable(identifier)).metadata.currentSnapshotId ?? 0n
    await commitBy('second')
    await commitBy('third')
    const catalog = committing(async (t, r, n) => {
      if (n > 1) return sound.commit(t, r)
      const now = await sound.loadTable(identifier)
      const ref = { snapshotId: first, type: 'tag' } as const
      await sound.commit(now, { requirements: [], updates: [{ action: 'set-snapshot-ref', refName: 'keep', ref }] })
      return unknown
    })
    expect(await commitTable(catalog, identifier, expire, { pause })).toMatchObject({ outcome: 'applied', attempts: 2 })
    const { metadata } = await sound.loadTable(identifier)
    expect(metadata.refs.get('keep')?.snapshotId).toBe(first)
    expect(metadata.snapshots).toHaveLength(2)
  })

  test('is not sent again over other properties', async () => {
    const sent: (string | undefined)[] = []
    const catalog = committing(async (t, r, n) => {
      sent.push(r.idempotencyKey)
      if (n > 1) return sound.commit(t, r)
      await setProperties({ changed: 'meanwhile' })
      return unknown
    })
    const { build, ids, files } = appends()
    expect(await commitTable(catalog, identifier, build, { pause })).toMatchObject({ outcome: 'applied', attempts: 2 })
    expect(new Set(sent).size).toBe(2)
    expect(chainOf(await sound.loadTable(identifier))).toEqual([ids[1]])
    expect(await exists(files)).toEqual([true, true])
  })

  test('stays unknown when it may still arrive and there are no tries left', async () => {
    await setProperties({ 'commit.retry.num-retries': '0' })
    const catalog = committing(async () => {
      await setProperties({ changed: 'meanwhile' })
      return unknown
    })
    expect((await commitTable(catalog, identifier, appends().build, { pause })).outcome).toBe('unknown')
  })
})

describe('the search for a commit of unknown outcome', () => {
  test('looks at once, and then as often as commit.status-check says', async () => {
    await setProperties({ 'commit.status-check.num-retries': '2', 'commit.status-check.min-wait-ms': '2000' })
    const waited: number[] = []
    let sends = 0
    const catalog = committing(async () => ((sends += 1), unknown))
    const outcome = await commitTable(catalog, identifier, appends().build, {
      pause: async (ms) => void waited.push(ms),
    })
    expect(outcome.outcome).toBe('unknown')
    expect(waited).toHaveLength(2)
    expect(waited[0]).toBeGreaterThanOrEqual(1000)
    expect(waited[1]).toBeGreaterThanOrEqual(2000)
    expect(sends).toBe(3)
  })

  test('looks though the time of the commit is longer than any timer', async () => {
    await setProperties({ 'commit.retry.total-timeout-ms': '9223372036854775807' })
    const catalog = committing(async (t, r) => (await sound.commit(t, r), unknown))
    expect((await commitTable(catalog, identifier, appends().build, { pause })).outcome).toBe('applied')
  })

  test('ends when the time of the commit is over', async () => {
    await setProperties({ 'commit.retry.total-timeout-ms': '300', 'commit.status-check.min-wait-ms': '500000' })
    const catalog = committing(async () => unknown)
    const startedAt = performance.now()
    expect((await commitTable(catalog, identifier, appends().build)).outcome).toBe('unknown')
    expect(performance.now() - startedAt).toBeLessThan(5000)
  })

  test('ends within a second when it is called off, though the catalog does not answer', async () => {
    const controller = new AbortController()
    let isHanging = false
    let calledOffAt = 0
    const looking = committing(async () => ((isHanging = true), unknown))
    const catalog = new Proxy<Catalog>(looking, {
      get: (target, key) => {
        if (key !== 'loadTable' || !isHanging) return Reflect.get(target, key) as unknown
        return () => {
          calledOffAt ||= performance.now()
          controller.abort()
          return new Promise(() => {})
        }
      },
    })
    const { build, files } = appends()
    const outcome = await commitTable(catalog, identifier, build, { signal: controller.signal })
    expect(outcome).toMatchObject({ outcome: 'unknown' })
    expect(performance.now() - calledOffAt).toBeLessThan(1000)
    expect(await exists(files)).toEqual([true])
  })

  test('looks once more when it is called off', async () => {
    const controller = new AbortController()
    const catalog = committing(async (t, r) => {
      await sound.commit(t, r)
      controller.abort()
      return unknown
    })
    const outcome = await commitTable(catalog, identifier, appends().build, { signal: controller.signal })
    expect(outcome.outcome).toBe('applied')
  })
})

describe('pauses between tries', () => {
  test('end the tries when the time of the table is over', async () => {
    const table = await sound.loadTable(identifier)
    const updates = [{ action: 'set-properties', updates: { 'commit.retry.total-timeout-ms': '0' } }] as const
    await sound.commit(table, { requirements: [], updates })
    const { build } = appends(() => commitBy('theirs'))
    expect(await commitTable(sound, identifier, build, { pause })).toMatchObject({ why: 'conflict', attempts: 1 })
  })

  test('are as long as a busy catalog asks', async () => {
    const waited: number[] = []
    const error = new IcebergError('catalog_unavailable', 'busy')
    const catalog = committing(async (t, r, n) =>
      n === 1 ? { outcome: 'not_applied', why: 'unavailable', error, retryAfterMs: 12_345 } : sound.commit(t, r),
    )
    const { build } = appends()
    const outcome = await commitTable(catalog, identifier, build, { pause: async (ms) => void waited.push(ms) })
    expect(outcome.outcome).toBe('applied')
    expect(waited).toEqual([12_345])
  })
})
