import { mkdtemp, readdir, rm, symlink, writeFile, mkdir, chmod } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { LocalStorage, locationKey, parseLocation } from '../../src/storage/index.ts'
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
