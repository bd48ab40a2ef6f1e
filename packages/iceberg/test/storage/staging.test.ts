import { spawnSync } from 'node:child_process'
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { LocalStorage, Staging, type ByteRange, type Storage } from '../../src/storage/index.ts'
import { sendDrafts, temporaryDraft } from '../../src/storage/draft.ts'
import { ownTag } from '../../src/storage/process-tag.ts'

let root: string
let stores = 0
beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), 'fencepost-copies-'))
})
afterAll(() => rm(root, { recursive: true, force: true }))

/** Files of this machine under the names of remote ones. */
function remote(fail?: (location: string, range: ByteRange | undefined) => void): Storage {
  const local = new LocalStorage()
  const folder = `${root}/remote${(stores += 1)}`
  const at = (location: string): string => location.replace('s3://', `${folder}/`)
  const storage: Storage = {
    read: async (location, range, options) => {
      fail?.(location, range)
      return local.read(at(location), range, options)
    },
    size: (location, options) => local.size(at(location), options),
    write: (location, content, options) => local.write(at(location), content, options),
    draft: (location) => temporaryDraft(location),
    adopt: (drafts, options) => sendDrafts(storage, drafts, options),
    copy: (from, to, options) => local.copy(at(from), at(to), options),
    list: (prefix, options) => local.list(at(prefix), options),
    delete: (locations, options) => local.delete(locations.map(at), options),
    exists: (location, options) => local.exists(at(location), options),
    now: (prefix, options) => local.now(at(prefix), options),
  }
  return storage
}

async function freshFolder(): Promise<string> {
  return mkdtemp(join(root, 'folder-'))
}

describe('staging', () => {
  test('files of one call are copied at the same time, as many as is allowed', async () => {
    let [underWay, most] = [0, 0]
    let threeAreUnderWay = () => {}
    const three = new Promise<void>((resolve) => {
      threeAreUnderWay = resolve
    })
    const storage = remote()
    const counting: Storage = {
      ...storage,
      read: async (location, range) => {
        most = Math.max(most, (underWay += 1))
        if (underWay === 3) threeAreUnderWay()
        await three
        underWay -= 1
        return storage.read(location, range)
      },
    }
    const files = Array.from({ length: 9 }, (_, n) => ({ location: `s3://b/${n}.parquet` }))
    for (const { location } of files) await storage.write(location, Buffer.from(location))
    const staging = await Staging.open({ folder: await freshFolder(), parallelFiles: 3 })
    const staged = await staging.stage(counting, files)
    expect(await Promise.all(staged.paths.map((path) => readFile(path, 'utf8')))).toEqual(files.map((f) => f.location))
    expect(most).toBe(3)
    await staged.release()
    await staging.close()
  })

  test('remote files are copied, local ones are used where they are, and release removes only the copies', async () => {
    const storage = remote()
    const content = Buffer.from('0123456789'.repeat(1000))
    await storage.write('s3://b/x.parquet', content)
    await writeFile(`${root}/local.parquet`, 'here')
    const staging = await Staging.open({ folder: await freshFolder(), partBytes: 999 })
    const staged = await staging.stage(storage, [
      { location: 's3://b/x.parquet' },
      { location: `file://${root}/local.parquet` },
    ])
    const [copy = '', local = ''] = staged.paths
    expect(copy.endsWith('.parquet')).toBe(true)
    expect(Buffer.compare(await readFile(copy), content)).toBe(0)
    expect(local).toBe(`${root}/local.parquet`)
    expect(staging.usedBytes).toBe(10_000)
    await staged.release()
    await staged.release()
    expect(staging.usedBytes).toBe(0)
    expect(await readdir(staging.folder)).toEqual([])
    expect(await readFile(local, 'utf8')).toBe('here')
    await staging.close()
  })

  test('who finds no room waits, in order, until others release', async () => {
    const storage = remote()
    for (const n of [1, 2, 3]) await storage.write(`s3://b/${n}`, Buffer.alloc(60))
    const staging = await Staging.open({ folder: await freshFolder(), maxBytes: 100 })
    const first = await staging.stage(storage, [{ location: 's3://b/1' }])
    const order: number[] = []
    const second = staging.stage(storage, [{ location: 's3://b/2', size: 60 }]).then((s) => (order.push(2), s))
    const third = staging.stage(storage, [{ location: 's3://b/3', size: 60 }]).then((s) => (order.push(3), s))
    expect(staging.usedBytes).toBe(60)
    await first.release()
    await (await second).release()
    await (await third).release()
    expect(order).toEqual([2, 3])
    expect(staging.usedBytes).toBe(0)
  })

  test('files that can never fit are refused at once', async () => {
    const staging = await Staging.open({ folder: await freshFolder(), maxBytes: 100 })
    await expect(staging.stage(remote(), [{ location: 's3://b/1', size: 101 }])).rejects.toMatchObject({
      code: 'staging_full',
    })
    await expect(staging.reserve(101)).rejects.toMatchObject({ code: 'staging_full' })
  })

  test('who stops waiting lets the next one in', async () => {
    const storage = remote()
    await storage.write('s3://b/1', Buffer.alloc(10))
    const staging = await Staging.open({ folder: await freshFolder(), maxBytes: 100 })
    const first = await staging.reserve(90)
    const stop = new AbortController()
    const large = staging.reserve(100, '', stop.signal)
    const small = staging.stage(storage, [{ location: 's3://b/1', size: 10 }])
    stop.abort(new Error('not wanted any more'))
    await expect(large).rejects.toThrow('not wanted any more')
    await (await small).release()
    await first.release()
    expect(staging.usedBytes).toBe(0)
  })

  test('a copy that fails leaves nothing behind', async () => {
    const storage = remote((_location, range) => {
      if (range?.offset === 20) throw new Error('connection reset')
    })
    await storage.write('s3://b/1', Buffer.alloc(60))
    const staging = await Staging.open({ folder: await freshFolder(), partBytes: 10 })
    await expect(staging.stage(storage, [{ location: 's3://b/1' }])).rejects.toThrow('connection reset')
    expect(staging.usedBytes).toBe(0)
    expect(await readdir(staging.folder)).toEqual([])
  })

  test('what dead processes left is removed, what living ones use is not', async () => {
    const folder = await freshFolder()
    const { pid } = spawnSync(process.execPath, ['-e', '0'])
    const names = [
      `fencepost-staging-${pid}-1-abc`,
      `fencepost-write-${pid}-1-abc`,
      `fencepost-staging-${process.pid}-1-abc`,
      `fencepost-staging-${ownTag()}-abc`,
      'fencepost-staging-of-others',
    ]
    for (const name of names) {
      await mkdir(join(folder, name))
      await writeFile(join(folder, name, 'f'), 'x')
    }
    const staging = await Staging.open({ folder })
    const left = await readdir(folder)
    expect(left).toContain(`fencepost-staging-${ownTag()}-abc`)
    expect(left).toContain('fencepost-staging-of-others')
    for (const what of ['staging', 'write']) expect(left).not.toContain(`fencepost-${what}-${pid}-1-abc`)
    // Its pid is ours now, but it was another process: it started at another time.
    if (process.platform === 'linux') expect(left).not.toContain(`fencepost-staging-${process.pid}-1-abc`)
    await staging.close()
    expect(await readdir(folder)).toHaveLength(left.length - 1)
  })
})
