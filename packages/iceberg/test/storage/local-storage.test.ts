import { mkdtemp, readdir, rm, symlink, writeFile, mkdir, chmod } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
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
  }))
}

describe('local files', () => {
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
    const failed = await storage.delete([`${root}/mixed/folder`, `${root}/mixed/g`])
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
    const failed = await storage.delete(['gs://b/k', `${root}/routed`])
    expect(failed.map((f) => f.location)).toEqual(['gs://b/k'])
    expect(await storage.exists(`${root}/routed`)).toBe(false)
  })
})
