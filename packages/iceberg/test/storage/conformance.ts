import { randomBytes, randomUUID } from 'node:crypto'
import { access, readFile, writeFile } from 'node:fs/promises'
import { describe, expect, test, vi } from 'vitest'
import type { ListedFile, Storage } from '../../src/storage/index.ts'

export interface StorageBed {
  storage: Storage
  /** A fresh folder, without a slash at its end. */
  folder: string
  /** Names the store cannot hold as they are, whatever we do. */
  impossible?: readonly string[]
  /** Whether a delete says which files were not there. */
  tellsMissing: boolean
}

const text = (bytes: Uint8Array): string => Buffer.from(bytes).toString('utf8')
const bytes = (content: string): Uint8Array => Buffer.from(content, 'utf8')

export async function listed(storage: Storage, folder: string): Promise<ListedFile[]> {
  const files: ListedFile[] = []
  for await (const file of storage.list(folder)) files.push(file)
  return files.toSorted((a, b) => (a.location < b.location ? -1 : 1))
}

const awkwardNames = [
  'a b',
  'a%20b',
  'a+b',
  'day=2026-01-01%2000%3A00',
  'ключ=значение',
  '日本',
  'quote\'and"double',
  'a&b<c>d',
  'a#b?c=d',
  '_hidden',
  '.dot',
  'tilde~!@$^*()[]{};,|`',
]

/** What every storage does alike. */
export function storageConformance(name: string, open: () => Promise<StorageBed>): void {
  describe(`${name} as a storage`, () => {
    test('what is written is read, whole and in parts', async () => {
      const { storage, folder } = await open()
      const location = `${folder}/x/y/file.bin`
      await storage.write(location, bytes('hello, world'))
      expect(text(await storage.read(location))).toBe('hello, world')
      expect(text(await storage.read(location, { offset: 7, length: 5 }))).toBe('world')
      expect(text(await storage.read(location, { offset: 0, length: 12 }))).toBe('hello, world')
      expect((await storage.read(location, { offset: 12, length: 0 })).length).toBe(0)
      expect(await storage.size(location)).toBe(12)
      expect(await storage.exists(location)).toBe(true)
    })

    test('a range that is not inside the file is refused', async () => {
      const { storage, folder } = await open()
      await storage.write(`${folder}/f`, bytes('12345'))
      for (const [offset, length] of [
        [0, 6],
        [4, 2],
        [5, 1],
        [100, 1],
        [6, 0],
        [-1, 2],
      ] as const) {
        await expect(storage.read(`${folder}/f`, { offset, length })).rejects.toMatchObject({ code: 'storage_range' })
      }
    })

    test('an empty file is a file', async () => {
      const { storage, folder } = await open()
      await storage.write(`${folder}/empty`, new Uint8Array())
      expect((await storage.read(`${folder}/empty`)).length).toBe(0)
      expect(await storage.size(`${folder}/empty`)).toBe(0)
      expect(await storage.exists(`${folder}/empty`)).toBe(true)
    })

    test('what is not there is not found, and a folder is not a file', async () => {
      const { storage, folder } = await open()
      await storage.write(`${folder}/sub/f`, bytes('x'))
      for (const location of [`${folder}/nothing`, `${folder}/sub`, `${folder}/sub/f/below`]) {
        await expect(storage.read(location)).rejects.toMatchObject({ code: 'storage_not_found' })
        await expect(storage.size(location)).rejects.toMatchObject({ code: 'storage_not_found' })
        expect(await storage.exists(location)).toBe(false)
      }
    })

    test('a write replaces, an exclusive one never does', async () => {
      const { storage, folder } = await open()
      const location = `${folder}/v1`
      await storage.write(location, bytes('one'))
      await storage.write(location, bytes('two'))
      expect(text(await storage.read(location))).toBe('two')
      await expect(storage.write(location, bytes('three'), { exclusive: true })).rejects.toMatchObject({
        code: 'storage_exists',
      })
      expect(text(await storage.read(location))).toBe('two')
      await storage.write(`${folder}/v2`, bytes('new'), { exclusive: true })
      expect(text(await storage.read(`${folder}/v2`))).toBe('new')
      expect(await listed(storage, folder)).toHaveLength(2)
    })

    test('of many exclusive writers at once one wins, and the others are told', async () => {
      const { storage, folder } = await open()
      const outcomes = await Promise.allSettled(
        Array.from({ length: 12 }, (_, i) =>
          storage.write(`${folder}/race`, bytes(`writer ${i}`), { exclusive: true }),
        ),
      )
      const won = outcomes.findIndex((o) => o.status === 'fulfilled')
      expect(text(await storage.read(`${folder}/race`))).toBe(`writer ${won}`)
      const lost = outcomes.flatMap((o) => (o.status === 'rejected' ? [o.reason.code] : []))
      expect(lost).toEqual(Array.from({ length: 11 }, () => 'storage_exists'))
    })

    test('a stream of chunks of any size becomes one file', async () => {
      const { storage, folder } = await open()
      const content = randomBytes(17 * 1024 * 1024 + 13)
      async function* chunks() {
        for (let at = 0, n = 1; at < content.length; at += n, n = (n * 7 + 3) % 900_001)
          yield content.subarray(at, at + n)
      }
      await storage.write(`${folder}/large`, chunks())
      expect(await storage.size(`${folder}/large`)).toBe(content.length)
      expect(Buffer.compare(await storage.read(`${folder}/large`), content)).toBe(0)
      const part = await storage.read(`${folder}/large`, { offset: 3_000_001, length: 13_000_003 })
      expect(Buffer.compare(part, content.subarray(3_000_001, 16_000_004))).toBe(0)
    })

    test('a large exclusive write does not overwrite either', async () => {
      const { storage, folder } = await open()
      const content = randomBytes(12 * 1024 * 1024)
      await storage.write(`${folder}/large`, content, { exclusive: true })
      await expect(
        storage.write(`${folder}/large`, new Uint8Array(content.length), { exclusive: true }),
      ).rejects.toMatchObject({ code: 'storage_exists' })
      expect(Buffer.compare(await storage.read(`${folder}/large`), content)).toBe(0)
    })

    test('content that fails half way leaves no file', async () => {
      const { storage, folder } = await open()
      async function* broken() {
        yield new Uint8Array(12 * 1024 * 1024)
        throw new Error('the source broke')
      }
      await expect(storage.write(`${folder}/half`, broken())).rejects.toThrow('the source broke')
      expect(await storage.exists(`${folder}/half`)).toBe(false)
      expect(await listed(storage, folder)).toEqual([])
    })

    test('a folder lists what is below it, at any depth, and not its neighbours', async () => {
      const { storage, folder } = await open()
      for (const name of ['t/a', 't/b/c', 't/b/d/e', 't2/a', 't.txt'])
        await storage.write(`${folder}/${name}`, bytes(name))
      const files = await listed(storage, `${folder}/t`)
      expect(files.map((f) => f.location)).toEqual([`${folder}/t/a`, `${folder}/t/b/c`, `${folder}/t/b/d/e`])
      expect(files.map((f) => f.size)).toEqual([3, 5, 7])
      for (const { modifiedAt } of files) expect(Math.abs(modifiedAt.getTime() - Date.now())).toBeLessThan(120_000)
      expect((await listed(storage, `${folder}/t/`)).map((f) => f.location)).toEqual(files.map((f) => f.location))
      expect(await listed(storage, `${folder}/nothing`)).toEqual([])
    })

    test('names are taken as they are: nothing is decoded', async () => {
      const { storage, folder, impossible = [] } = await open()
      const names = awkwardNames.filter((n) => !impossible.includes(n))
      for (const n of names) await storage.write(`${folder}/${n}/${n}`, bytes(n))
      expect((await listed(storage, folder)).map((f) => f.location)).toEqual(
        names.map((n) => `${folder}/${n}/${n}`).toSorted(),
      )
      for (const n of names) expect(text(await storage.read(`${folder}/${n}/${n}`))).toBe(n)
      const [kept = '', ...gone] = names
      expect((await storage.delete(gone.map((n) => `${folder}/${n}/${n}`))).failed).toEqual([])
      expect((await listed(storage, folder)).map((f) => f.location)).toEqual([`${folder}/${kept}/${kept}`])
    })

    test('deleting what is not there is no error, and is told apart where the store knows', async () => {
      const { storage, folder, tellsMissing } = await open()
      await storage.write(`${folder}/a`, bytes('a'))
      const gone = [`${folder}/missing`, `${folder}/no/such/folder`]
      const { failed, missing } = await storage.delete([`${folder}/a`, ...gone])
      expect(failed).toEqual([])
      expect(missing.toSorted()).toEqual(tellsMissing ? gone : [])
      expect(await storage.exists(`${folder}/a`)).toBe(false)
      expect(await storage.delete([])).toEqual({ failed: [], missing: [] })
    })

    test('drafts appear whole when they are adopted, and not before', async () => {
      const { storage, folder } = await open()
      const names = ['new/x/1.parquet', 'new/x/2.parquet', 'new/y/3.parquet']
      const drafts = []
      for (const name of names) {
        const draft = await storage.draft(`${folder}/${name}`)
        await writeFile(draft.path, name)
        drafts.push(draft)
        expect(await storage.exists(draft.location)).toBe(false)
      }
      await storage.adopt(drafts)
      for (const [n, { location, path }] of drafts.entries()) {
        expect(text(await storage.read(location))).toBe(names[n])
        await expect(access(path)).rejects.toMatchObject({ code: 'ENOENT' })
      }
      for (const draft of drafts) await draft.discard()
      expect((await listed(storage, folder)).map((f) => f.location)).toEqual(names.map((n) => `${folder}/${n}`))
      await storage.adopt([])
    })

    test('a draft replaces what is there, and one that is discarded leaves nothing', async () => {
      const { storage, folder } = await open()
      await storage.write(`${folder}/f`, bytes('old'))
      const [kept, dropped] = [await storage.draft(`${folder}/f`), await storage.draft(`${folder}/g`)]
      for (const { path } of [kept, dropped]) await writeFile(path, randomBytes(6 * 1024 * 1024))
      const content = await readFile(kept.path)
      await storage.adopt([kept])
      await dropped.discard()
      await dropped.discard()
      expect(Buffer.compare(await storage.read(`${folder}/f`), content)).toBe(0)
      expect(await listed(storage, folder)).toHaveLength(1)
      await expect(access(dropped.path)).rejects.toMatchObject({ code: 'ENOENT' })
    })

    test('a draft that was never written is refused', async () => {
      const { storage, folder } = await open()
      const draft = await storage.draft(`${folder}/f`)
      await expect(storage.adopt([draft])).rejects.toMatchObject({ code: expect.stringMatching(/^storage_/) })
      expect(await storage.exists(`${folder}/f`)).toBe(false)
      await draft.discard()
      await expect(storage.draft('gs://bucket/f')).rejects.toMatchObject({ code: 'location_invalid' })
    })

    test('a copy is the same file at another place, and replaces what is there', async () => {
      const { storage, folder, impossible = [] } = await open()
      for (const name of awkwardNames.filter((n) => !impossible.includes(n))) {
        await storage.write(`${folder}/${name}`, bytes(name))
        await storage.copy(`${folder}/${name}`, `${folder}/kept/away/${name}`)
        expect(text(await storage.read(`${folder}/kept/away/${name}`))).toBe(name)
        expect(text(await storage.read(`${folder}/${name}`))).toBe(name)
      }
      await storage.write(`${folder}/new`, bytes('new'))
      await storage.copy(`${folder}/new`, `${folder}/kept/away/_hidden`)
      expect(text(await storage.read(`${folder}/kept/away/_hidden`))).toBe('new')
      for (const missing of [`${folder}/nothing`, `${folder}/kept`]) {
        await expect(storage.copy(missing, `${folder}/copy`)).rejects.toMatchObject({ code: 'storage_not_found' })
      }
      expect(await storage.exists(`${folder}/copy`)).toBe(false)
    })

    test('the clock is the one that dates the files', async () => {
      const { storage, folder } = await open()
      await storage.write(`${folder}/before`, bytes('x'))
      const now = await storage.now(folder)
      await storage.write(`${folder}/after`, bytes('x'))
      const [after, before] = await listed(storage, folder)
      // S3 dates in whole seconds, and a server may look at its clock once a second.
      expect(now.getTime()).toBeGreaterThanOrEqual((before?.modifiedAt.getTime() ?? 0) - 2000)
      expect(now.getTime()).toBeLessThan((after?.modifiedAt.getTime() ?? 0) + 1000)
      expect(await listed(storage, folder)).toHaveLength(2)
      expect(Math.abs((await storage.now(`${folder}/nothing/there`)).getTime() - now.getTime())).toBeLessThan(60_000)
    })

    test('a call whose signal is aborted throws its reason, and does nothing', async () => {
      const { storage, folder } = await open()
      await storage.write(`${folder}/f`, bytes('x'))
      const draft = await storage.draft(`${folder}/d`)
      await writeFile(draft.path, 'x')
      const reason = new Error('not wanted any more')
      const signal = AbortSignal.abort(reason)
      const calls: Record<string, () => Promise<unknown>> = {
        read: () => storage.read(`${folder}/f`, undefined, { signal }),
        'read of a part': () => storage.read(`${folder}/f`, { offset: 0, length: 1 }, { signal }),
        size: () => storage.size(`${folder}/f`, { signal }),
        exists: () => storage.exists(`${folder}/f`, { signal }),
        write: () => storage.write(`${folder}/g`, bytes('x'), { signal }),
        'exclusive write': () => storage.write(`${folder}/g`, bytes('x'), { signal, exclusive: true }),
        draft: () => storage.draft(`${folder}/g`, { signal }),
        adopt: () => storage.adopt([draft], { signal }),
        copy: () => storage.copy(`${folder}/f`, `${folder}/g`, { signal }),
        delete: () => storage.delete([`${folder}/f`], { signal }),
        now: () => storage.now(folder, { signal }),
        list: () => storage.list(folder, { signal })[Symbol.asyncIterator]().next(),
      }
      for (const [call, run] of Object.entries(calls)) await expect(run(), call).rejects.toBe(reason)
      await draft.discard()
      expect((await listed(storage, folder)).map((f) => f.location)).toEqual([`${folder}/f`])
    })

    test('a write whose source hangs ends when its signal is aborted, and leaves no file', async () => {
      const { storage, folder } = await open()
      const stop = new AbortController()
      let closed = false
      async function* hanging(): AsyncGenerator<Uint8Array> {
        try {
          yield new Uint8Array(12 * 1024 * 1024)
          stop.abort(new Error('not wanted any more'))
          await new Promise(() => {})
        } finally {
          closed = true
        }
      }
      const source = hanging()
      const write = storage.write(`${folder}/half`, source, { signal: stop.signal })
      await expect(write).rejects.toThrow('not wanted any more')
      expect(closed).toBe(false) // nobody can make it go on
      expect(await storage.exists(`${folder}/half`)).toBe(false)
      // Nor under another name: what was begun is taken back, a moment later.
      await vi.waitFor(async () => expect(await listed(storage, folder)).toEqual([]), { timeout: 10_000 })
    })

    test('a listing ends where its signal is aborted', async () => {
      const { storage, folder } = await open()
      for (const n of [1, 2, 3]) await storage.write(`${folder}/${n}`, bytes('x'))
      const stop = new AbortController()
      const list = async (): Promise<void> => {
        for await (const file of storage.list(folder, { signal: stop.signal })) stop.abort(new Error(file.location))
      }
      await expect(list()).rejects.toThrow(folder)
    })

    test('a file named by another location is not reached', async () => {
      const { storage } = await open()
      await expect(storage.read(`gs://bucket/${randomUUID()}`)).rejects.toMatchObject({ code: 'location_invalid' })
    })
  })
}
