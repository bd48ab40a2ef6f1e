import { execFileSync } from 'node:child_process'
import { chmod, mkdir, mkdtemp, open, readdir, rm, stat, symlink, writeFile, type FileHandle } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { LocalStorage, locationKey, longestPrefix, parseLocation, RoutedStorage } from '../../src/storage/index.ts'
import { listed, storageConformance } from './conformance.ts'

let root: string
let folders = 0
beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), 'fencepost-storage-'))
})
afterAll(() => rm(root, { recursive: true, force: true }))

for (const [name, prefix] of [
  ['plain paths', ''],
  ['file: locations', 'file:'],
  ['file:// locations', 'file://'],
  ['file://localhost locations', 'file://localhost'],
] as const) {
  storageConformance(name, async () => ({
    storage: new LocalStorage(),
    folder: `${prefix}${root}/${(folders += 1)}`,
    tellsMissing: true,
  }))
}

storageConformance('a storage that goes by locations', async () => ({
  storage: new RoutedStorage(),
  folder: `file://${root}/${(folders += 1)}`,
  tellsMissing: true,
}))

/** What was synced, in order: by its inode, as files are renamed, with the names in it if it is a folder. */
async function syncsDuring(work: () => Promise<void>): Promise<{ ino: number; names: string[] }[]> {
  const handle = await open(root, 'r')
  const prototype = Object.getPrototypeOf(handle) as FileHandle
  await handle.close()
  const synced: { ino: number; names: string[] }[] = []
  const sync = prototype.sync
  const spy = vi.spyOn(prototype, 'sync').mockImplementation(async function (this: FileHandle) {
    const found = await this.stat()
    const names = found.isDirectory() ? await readdir(`/proc/self/fd/${this.fd}`) : []
    await sync.call(this)
    synced.push({ ino: found.ino, names })
  })
  try {
    await work()
  } finally {
    spy.mockRestore()
  }
  return synced
}

describe.runIf(process.platform === 'linux')('durability', () => {
  const storage = new LocalStorage()
  const folderOf = (): string => `${root}/durable${(folders += 1)}`
  const adopted = async (locations: string[]): Promise<void> => {
    const drafts = await Promise.all(locations.map((location) => storage.draft(location)))
    for (const { path } of drafts) await writeFile(path, 'x')
    await storage.adopt(drafts)
  }

  test.each<[string, (location: string) => Promise<void>]>([
    ['write', (location) => storage.write(location, Buffer.from('x'))],
    ['adopt', (location) => adopted([location])],
    [
      'copy',
      async (location) => {
        await writeFile(`${root}/source`, 'x')
        await storage.copy(`${root}/source`, location)
      },
    ],
  ])('%s syncs the file, then its folder with its name, and every folder it made', async (_name, work) => {
    const folder = folderOf()
    const synced = await syncsDuring(() => work(`${folder}/a/b/file`))
    const { ino } = await stat(`${folder}/a/b/file`)
    const content = synced.findIndex((each) => each.ino === ino)
    expect(content).toBe(0)
    for (const [at, name] of [
      [`${folder}/a/b`, 'file'],
      [`${folder}/a`, 'b'],
      [folder, 'a'],
      [root, basename(folder)],
    ] as const) {
      const inode = (await stat(at)).ino
      expect(
        synced.some((each) => each.ino === inode && each.names.includes(name)),
        at,
      ).toBe(true)
    }
    const again = await syncsDuring(() => work(`${folder}/a/b/other`))
    expect(again).toHaveLength(2)
  })

  test('many drafts sync each folder once', async () => {
    const folder = folderOf()
    const locations = Array.from({ length: 20 }, (_, n) => `${folder}/p=${n % 2}/${n}`)
    const synced = await syncsDuring(() => adopted(locations))
    // The files, two folders, theirs, and the one above.
    expect(synced).toHaveLength(20 + 2 + 1 + 1)
    expect(synced.slice(0, 20).every(({ names }) => names.length === 0)).toBe(true)
  })

  test('a folder that another write made is synced by whoever needs it first', async () => {
    const folder = folderOf()
    const waiting = await storage.draft(`${folder}/new/slow`)
    const synced = await syncsDuring(() => storage.write(`${folder}/new/quick`, Buffer.from('x')))
    const inode = (await stat(folder)).ino
    expect(synced.some(({ ino, names }) => ino === inode && names.includes('new'))).toBe(true)
    await waiting.discard()
  })
})

describe('local files', () => {
  test('a draft from another file system is copied first', async (context) => {
    const other = await mkdtemp('/dev/shm/fencepost-').catch(() => undefined)
    if (other === undefined || (await stat(other)).dev === (await stat(root)).dev) return context.skip()
    try {
      await writeFile(`${other}/f`, 'from elsewhere')
      const storage = new LocalStorage()
      await storage.adopt([{ location: `${root}/moved/f`, path: `${other}/f`, discard: async () => {} }])
      expect(Buffer.from(await storage.read(`${root}/moved/f`)).toString()).toBe('from elsewhere')
      expect(await readdir(other)).toEqual([])
      expect(await readdir(`${root}/moved`)).toEqual(['f'])
    } finally {
      await rm(other, { recursive: true })
    }
  })

  test.runIf(process.platform === 'linux')('a read that hangs ends when its signal is aborted', async () => {
    execFileSync('mkfifo', [`${root}/pipe`])
    const stop = new AbortController()
    const read = new LocalStorage().read(`${root}/pipe`, undefined, { signal: stop.signal })
    stop.abort(new Error('not wanted any more'))
    await expect(read).rejects.toThrow('not wanted any more')
    await (await open(`${root}/pipe`, 'r+')).close() // lets the reader go
  })

  test('no temporary file stays beside what was written', async () => {
    const storage = new LocalStorage()
    await storage.write(`${root}/tidy/a`, Buffer.from('a'))
    await storage.write(`${root}/tidy/a`, Buffer.from('b'), { exclusive: true }).catch(() => {})
    expect(await readdir(`${root}/tidy`)).toEqual(['a'])
  })

  test('a link to a file is listed, one to a folder is not followed', async () => {
    await mkdir(`${root}/links/real`, { recursive: true })
    await writeFile(`${root}/links/real/f`, 'x')
    await symlink(`${root}/links/real/f`, `${root}/links/file-link`)
    await symlink(`${root}/links`, `${root}/links/real/loop`)
    const names = (await listed(new LocalStorage(), `${root}/links`)).map((f) => f.location.slice(root.length))
    expect(names).toEqual(['/links/file-link', '/links/real/f'])
  })

  test.skipIf(process.getuid?.() === 0)('a folder that may not be read makes a listing fail, not shorter', async () => {
    await mkdir(`${root}/closed/inner`, { recursive: true })
    await chmod(`${root}/closed/inner`, 0)
    await expect(listed(new LocalStorage(), `${root}/closed`)).rejects.toMatchObject({ code: 'storage_denied' })
    await chmod(`${root}/closed/inner`, 0o700)
  })

  test('a file where a folder is needed is a failure, not a file that exists', async () => {
    const storage = new LocalStorage()
    await storage.write(`${root}/plain`, Buffer.from('x'))
    for (const exclusive of [true, false]) {
      await expect(storage.write(`${root}/plain/a`, Buffer.from('x'), { exclusive })).rejects.toMatchObject({
        code: 'storage_failed',
      })
    }
    await expect(storage.makeFolder(`${root}/plain`)).rejects.toMatchObject({ code: 'storage_failed' })
  })

  test('a file that cannot be deleted is reported, and the others are deleted', async () => {
    const storage = new LocalStorage()
    await storage.write(`${root}/mixed/folder/f`, Buffer.from('x'))
    await storage.write(`${root}/mixed/g`, Buffer.from('x'))
    const { failed } = await storage.delete([`${root}/mixed/folder`, `${root}/mixed/g`])
    expect(failed.map((f) => f.location)).toEqual([`${root}/mixed/folder`])
    expect(await storage.exists(`${root}/mixed/g`)).toBe(false)
  })
})

describe('locations', () => {
  test('every spelling of a local file is the same file', () => {
    for (const spelling of [
      '/a/b c',
      'file:/a/b c',
      'file:///a/b c',
      'file:////a/b c',
      'FILE:///a/b c',
      'file://localhost/a/b c',
      '/a//./b c',
    ]) {
      expect(locationKey(spelling)).toBe('file:/a/b c')
    }
    expect(locationKey('file:///a/b%20c')).toBe('file:/a/b%20c')
    expect(parseLocation('data/persistent/x')).toEqual({ scheme: 'file', path: 'data/persistent/x' })
  })

  test('the key of an S3 object is compared byte for byte, its scheme is not', () => {
    expect(locationKey('s3a://b/k//x')).toBe('s3://b/k//x')
    const keys = [
      's3://b/k/x',
      's3n://b/k//x',
      's3://b/k%2Fx',
      's3://b/k/./x',
      's3://b/K/x',
      's3://b//k/x',
      's3://b/k/x/',
    ]
    expect(new Set(keys.map(locationKey)).size).toBe(keys.length)
    expect(parseLocation('S3A://b')).toEqual({ scheme: 's3', bucket: 'b', key: '' })
  })

  test('what names no file that can be reached is refused', () => {
    for (const bad of [
      '',
      'gs://b/k',
      'hdfs://h/p',
      's3://',
      's3:///k',
      's3:b/k',
      'file://other-host/a',
      'file:a/b',
      'a\0b',
    ]) {
      expect(() => parseLocation(bad), bad).toThrow(expect.objectContaining({ code: 'location_invalid' }))
    }
  })
})

describe('properties by prefix', () => {
  const find = (location: string, ...prefixes: string[]): string | undefined =>
    longestPrefix(
      prefixes.map((prefix) => ({ prefix, properties: {} })),
      location,
    )?.prefix

  test('the longest wins, whatever its scheme is called and however long that is', () => {
    expect(find('s3://b/t/x', 's3', 's3://b', 's3a://b/t', 's3://b/t/y')).toBe('s3a://b/t')
    expect(find('s3://b/k', 's3a://b', 's3://b/k')).toBe('s3://b/k')
    expect(find('s3://c/t', 's3://b', 's3n://')).toBe('s3n://')
    expect(find('s3://bb/t', 's3://b')).toBeUndefined()
    expect(find('/a/b', 's3', 'gs://b', 'file:///a')).toBe('file:///a')
  })

  test('a location that nobody can reach is a rejection, and in a delete a failure', async () => {
    const storage = new RoutedStorage()
    for (const work of [
      storage.read('gs://b/k'),
      storage.size('gs://b/k'),
      storage.write('gs://b/k', Buffer.from('')),
      storage.exists('gs://b/k'),
      listed(storage, 'gs://b'),
    ]) {
      await expect(work).rejects.toMatchObject({ code: 'location_invalid' })
    }
    await storage.write(`${root}/routed`, Buffer.from('x'))
    const { failed } = await storage.delete(['gs://b/k', `${root}/routed`])
    expect(failed.map((f) => f.location)).toEqual(['gs://b/k'])
    expect(await storage.exists(`${root}/routed`)).toBe(false)
  })
})
