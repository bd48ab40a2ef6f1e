import { ListMultipartUploadsCommand } from '@aws-sdk/client-s3'
import { randomBytes, randomUUID } from 'node:crypto'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { createServer, request, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeAll, describe, expect, test } from 'vitest'
import { RoutedStorage, S3Storage, Staging, storageFor, type S3Options } from '../../src/storage/index.ts'
import { openS3Client } from '../../src/storage/s3-client.ts'
import { copyObject } from '../../src/storage/s3-copy.ts'
import { listed, storageConformance } from '../storage/conformance.ts'
import { s3Properties, startS3, type S3Server } from './s3-server.ts'
import { closedAfterAll } from './server-process.ts'

const bucket = 'storage'
const opened = closedAfterAll()
let server: S3Server
let s3: S3Options
beforeAll(async () => {
  server = opened(await startS3({ buckets: [bucket] }))
  const { endpoint, accessKeyId, secretAccessKey } = server
  s3 = { endpoint, credentials: { accessKeyId, secretAccessKey }, partBytes: 5 * 1024 * 1024 }
})

const folderOf = (scheme = 's3'): string => `${scheme}://${bucket}/${randomUUID()}`

describe('S3', () => {
  for (const scheme of ['s3', 's3a', 's3n']) {
    storageConformance(scheme, async () => ({
      storage: new S3Storage(s3),
      folder: folderOf(scheme),
      tellsMissing: false,
    }))
  }

  test('a listing of several pages is whole, and a delete of several batches too', async () => {
    const storage = new S3Storage(s3)
    const folder = folderOf()
    const locations = Array.from({ length: 1105 }, (_, i) => `${folder}/p=${i % 7}/${i}`)
    for (let at = 0; at < locations.length; at += 50) {
      await Promise.all(locations.slice(at, at + 50).map((l) => storage.write(l, Buffer.from(l))))
    }
    expect((await listed(storage, folder)).map((f) => f.location)).toEqual(locations.toSorted())
    expect((await storage.delete([...locations, `${folder}/missing`])).failed).toEqual([])
    expect(await listed(storage, folder)).toEqual([])
  })

  test('a large folder is listed in ranges of keys, each key once, also with the marks of folders', async () => {
    const storage = new S3Storage(s3)
    const folder = folderOf()
    const names = Array.from({ length: 2600 }, (_, i) => {
      if (i % 13 === 0) return `flat-${i}`
      return i % 7 === 0 ? `metadata/${i}` : `data/день=${i % 5}/часть=${i % 11}/${i}`
    })
    for (let at = 0; at < names.length; at += 100) {
      await Promise.all(names.slice(at, at + 100).map((name) => storage.write(`${folder}/${name}`, Buffer.from('x'))))
    }
    await storage.makeFolder(`${folder}/data/empty`)
    const found = (await listed(storage, folder)).map((f) => f.location)
    expect(found).toHaveLength(names.length)
    expect(new Set(found)).toEqual(new Set(names.map((name) => `${folder}/${name}`)))
    let taken = 0
    for await (const file of storage.list(folder)) if ((taken += 1) === 1500 && file.size === 1) break
    expect(taken).toBe(1500)
    await storage.delete(found)
  })

  test('what S3 does not copy in one request is copied in parts', async () => {
    const client = openS3Client(s3)
    const [from, to] = [`${folderOf()}/a b%20ü`, `${folderOf()}/copy`]
    const content = randomBytes(12 * 1024 * 1024)
    const storage = new S3Storage(s3)
    await storage.write(from, content)
    const options = { bytes: content.length, etag: undefined, signal: undefined }
    await copyObject(client, from, to, options, { maxBytes: 1, partBytes: 5 * 1024 * 1024 })
    expect(Buffer.compare(await storage.read(to), content)).toBe(0)
    client.destroy()
  })

  test('a bucket that is not there is said to be missing; every key of its deletes is reported', async () => {
    const storage = new S3Storage(s3)
    await expect(storage.read('s3://no-such-bucket-here/a')).rejects.toMatchObject({ code: 'storage_not_found' })
    await expect(storage.write('s3://no-such-bucket-here/a', Buffer.from('x'))).rejects.toMatchObject({
      code: 'storage_not_found',
    })
    const { failed } = await storage.delete(['s3://no-such-bucket-here/a', 's3://no-such-bucket-here/b'])
    expect(failed.map((f) => f.location)).toEqual(['s3://no-such-bucket-here/a', 's3://no-such-bucket-here/b'])
  })

  test('wrong credentials are denied', async () => {
    const storage = new S3Storage({ ...s3, credentials: { accessKeyId: server.accessKeyId, secretAccessKey: 'wrong' } })
    await expect(storage.read(`${folderOf()}/x`)).rejects.toMatchObject({ code: 'storage_denied' })
    await expect(listed(storage, folderOf())).rejects.toMatchObject({ code: 'storage_denied' })
  })

  test("Iceberg's own properties open it, and credentials are asked for again before they expire", async () => {
    const properties = s3Properties(server)
    const location = `${folderOf()}/x`
    await storageFor(location, properties).write(location, Buffer.from('x'))
    let asked = 0
    const expiring = {
      ...properties,
      's3.secret-access-key': 'expired',
      's3.session-token-expires-at-ms': String(Date.now() + 1000),
    }
    const refreshed = storageFor(location, expiring, {
      refreshCredentials: async () => {
        asked += 1
        return properties
      },
    })
    expect(Buffer.from(await refreshed.read(location)).toString()).toBe('x')
    expect(asked).toBe(1)
  })

  test('credentials that the server takes no longer are asked for again, once', async () => {
    const keys = (name: string) => ({ accessKeyId: `${name}-key`, secretAccessKey: `${name}-secret` })
    const [first, second] = [keys('first'), keys('second')]
    await server.issue(first)
    const location = `${folderOf()}/x`
    let asked = 0
    let answer = s3Properties(server, second)
    const storage = storageFor(location, s3Properties(server, first), {
      refreshCredentials: async () => {
        asked += 1
        return answer
      },
    })
    await storage.write(location, Buffer.from('x'))
    expect(asked).toBe(0)
    await server.issue(second)
    await server.revoke(first)
    expect(await storage.exists(location)).toBe(true)
    expect(Buffer.from(await storage.read(location)).toString()).toBe('x')
    expect(asked).toBe(1)
    await server.revoke(second)
    await expect(storage.read(location)).rejects.toMatchObject({ code: 'storage_denied' })
    expect(asked).toBe(2)
    answer = s3Properties(server)
    await storage.write(location, Buffer.from('y'))
    expect(asked).toBe(3)
  })

  test('what cannot be deleted here is reported, and the rest is deleted', async () => {
    const location = `${folderOf()}/x`
    for (const storage of [new S3Storage(s3), new RoutedStorage(s3Properties(server))]) {
      await storage.write(location, Buffer.from('x'))
      const { failed } = await storage.delete(['gs://elsewhere/x', location, `s3://${bucket}`])
      expect(failed.map((f) => f.location)).toEqual(['gs://elsewhere/x', `s3://${bucket}`])
      expect(await storage.exists(location)).toBe(false)
    }
  })

  test('an upload that fails is aborted, and what it read from is closed', async () => {
    const client = openS3Client(s3)
    const uploads = async (): Promise<unknown[]> => {
      const { Uploads = [] } = await client.send(new ListMultipartUploadsCommand({ Bucket: bucket }))
      return Uploads
    }
    let closed = false
    const seen: unknown[][] = []
    async function* content(): AsyncGenerator<Uint8Array> {
      try {
        for (let n = 0; ; n++) {
          if (n === 4) seen.push(await uploads())
          if (n === 5) throw new Error('the source broke')
          yield randomBytes(5 * 1024 * 1024)
        }
      } finally {
        closed = true
      }
    }
    const location = `${folderOf()}/large`
    await expect(new S3Storage(s3).write(location, content())).rejects.toThrow('the source broke')
    expect(seen[0]).toHaveLength(1)
    expect(await uploads()).toEqual([])
    expect(closed).toBe(true)
    closed = false
    const wrong = new S3Storage({ ...s3, credentials: { accessKeyId: server.accessKeyId, secretAccessKey: 'wrong' } })
    await expect(wrong.write(location, content())).rejects.toMatchObject({ code: 'storage_denied' })
    expect(closed).toBe(true)
    expect(await new S3Storage(s3).exists(location)).toBe(false)
    client.destroy()
  })

  test('credentials go by the longest prefix of a location', async () => {
    const folder = folderOf()
    const good = { 's3.access-key-id': server.accessKeyId, 's3.secret-access-key': server.secretAccessKey }
    const bad = { ...good, 's3.secret-access-key': 'wrong' }
    const routed = new RoutedStorage({ 's3.endpoint': server.endpoint }, [
      { prefix: `s3://${bucket}`, properties: bad },
      { prefix: folder, properties: good },
      { prefix: `${folder}/closed`, properties: bad },
      { prefix: 'gs://somewhere', properties: {} },
    ])
    await routed.write(`${folder.replace('s3:', 's3a:')}/open/x`, Buffer.from('x'))
    expect(await routed.exists(`${folder}/open/x`)).toBe(true)
    await expect(routed.read(`${folder}/closed/x`)).rejects.toMatchObject({ code: 'storage_denied' })
    await expect(routed.read(`s3://${bucket}/x`)).rejects.toMatchObject({ code: 'storage_denied' })
    const { failed } = await routed.delete([`${folder}/open/x`, `${folder}/closed/x`])
    expect(failed.map((f) => f.location)).toEqual([`${folder}/closed/x`])
  })

  test('a remote file is staged to the local disk', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'fencepost-s3-'))
    const storage = new S3Storage(s3)
    const location = `${folderOf()}/file.parquet`
    const content = randomBytes(11 * 1024 * 1024)
    await storage.write(location, content)
    const staging = await Staging.open({ folder, partBytes: 1024 * 1024 })
    const staged = await staging.stage(storage, [{ location }])
    expect(Buffer.compare(await readFile(staged.paths[0] ?? ''), content)).toBe(0)
    await staging.close()
    await rm(folder, { recursive: true })
  })

  describe('behind a network that fails', () => {
    let proxy: Proxy
    afterEach(() => proxy.close())
    const through = (options: Partial<S3Options> = {}): S3Storage =>
      new S3Storage({ ...s3, endpoint: proxy.address, maxAttempts: 4, ...options })

    test('an exclusive write whose answer was lost is found to be ours', async () => {
      proxy = await openProxy((n, method) => (method === 'PUT' && n <= 4 && n !== 2 ? 'lose-answer' : 'pass'))
      const location = `${folderOf()}/v1.metadata.json`
      await through().write(location, Buffer.from('ours'), { exclusive: true })
      expect(Buffer.from(await new S3Storage(s3).read(location)).toString()).toBe('ours')
    })

    test('a write that was done, and then denied when it was sent again, is found to be done', async () => {
      let puts = 0
      proxy = await openProxy((_n, method) => (method !== 'PUT' ? 'pass' : (puts += 1) === 1 ? 'lose-answer' : 403))
      const location = `${folderOf()}/x`
      await through().write(location, Buffer.from('ours'))
      expect(puts).toBe(2)
      expect(Buffer.from(await new S3Storage(s3).read(location)).toString()).toBe('ours')
    })

    test('a write that was denied when it was sent again, and cannot be looked for, may have been done', async () => {
      let n = 0
      proxy = await openProxy(() => ((n += 1) === 1 ? 'lose-answer' : 403))
      await expect(through().write(`${folderOf()}/x`, Buffer.from('x'))).rejects.toMatchObject({
        code: 'storage_failed',
      })
    })

    test('requests that fail or are throttled are sent again', async () => {
      proxy = await openProxy((n) => (n === 1 ? 'reset' : n === 2 ? 503 : 'pass'))
      const location = `${folderOf()}/x`
      await through().write(location, Buffer.from('x'))
      expect(Buffer.from(await through().read(location)).toString()).toBe('x')
    })

    test('a body that breaks off is read again', async () => {
      const location = `${folderOf()}/x`
      const content = randomBytes(3_000_000)
      await new S3Storage(s3).write(location, content)
      proxy = await openProxy((n) => (n <= 2 ? 'cut-body' : 'pass'))
      expect(Buffer.compare(await through().read(location), content)).toBe(0)
    })

    test('a server that ignores If-None-Match is found out before anything is overwritten', async () => {
      proxy = await openProxy(() => 'unconditional')
      const location = `${folderOf()}/v1`
      await new S3Storage(s3).write(location, Buffer.from('theirs'))
      await expect(through().write(location, Buffer.from('ours'), { exclusive: true })).rejects.toMatchObject({
        code: 'storage_unsupported',
      })
      const path = location.slice('s3:/'.length)
      expect(proxy.asked.filter((line) => line.startsWith(`PUT ${path}`))).toEqual([])
      expect(proxy.asked.some((line) => line.startsWith('PUT '))).toBe(true)
    })

    test('a call to a server that never answers ends when its signal is aborted', async () => {
      proxy = await openProxy(() => 'hang')
      const location = `${folderOf()}/x`
      const storage = through()
      const draft = await storage.draft(location)
      await writeFile(draft.path, 'x')
      const calls: ((signal: AbortSignal) => Promise<unknown>)[] = [
        (signal) => storage.read(location, undefined, { signal }),
        (signal) => storage.size(location, { signal }),
        (signal) => storage.exists(location, { signal }),
        (signal) => storage.write(location, Buffer.from('x'), { signal }),
        (signal) => storage.write(location, Buffer.from('x'), { signal, exclusive: true }),
        (signal) => storage.write(location, randomBytes(11 * 1024 * 1024), { signal }),
        (signal) => storage.adopt([draft], { signal }),
        (signal) => storage.copy(location, `${location}2`, { signal }),
        (signal) => storage.delete([location], { signal }),
        (signal) => storage.now(folderOf(), { signal }),
        (signal) => storage.list(folderOf(), { signal })[Symbol.asyncIterator]().next(),
        (signal) => storage.folders(folderOf(), { signal }),
        (signal) => storage.makeFolder(folderOf(), { signal }),
        (signal) => storage.removeFolder(folderOf(), { signal }),
        (signal) => storage.folderExists(folderOf(), { signal }),
      ]
      for (const call of calls) {
        const stop = new AbortController()
        const reason = new Error('not wanted any more')
        const asked = proxy.nextRequest()
        const result = call(stop.signal)
        await asked
        stop.abort(reason)
        await expect(result).rejects.toBe(reason)
      }
      await draft.discard()
    })

    test('a body that never ends is not waited for once its signal is aborted', async () => {
      const location = `${folderOf()}/x`
      await new S3Storage(s3).write(location, randomBytes(3_000_000))
      proxy = await openProxy(() => 'hang-body')
      const stop = new AbortController()
      const asked = proxy.nextRequest()
      const read = through().read(location, undefined, { signal: stop.signal })
      await asked
      stop.abort(new Error('not wanted any more'))
      await expect(read).rejects.toThrow('not wanted any more')
    })

    test('a wait before another try ends when the signal is aborted', async () => {
      proxy = await openProxy(() => 503)
      const stop = new AbortController()
      const asked = proxy.nextRequest()
      const size = through({ maxAttempts: 1000 }).size(`${folderOf()}/x`, { signal: stop.signal })
      await asked
      stop.abort(new Error('not wanted any more'))
      await expect(size).rejects.toThrow('not wanted any more')
    })

    test('a server that cannot be reached is a failure, never a missing file', async () => {
      proxy = await openProxy(() => 'reset')
      await expect(through({ maxAttempts: 2 }).exists(`${folderOf()}/x`)).rejects.toMatchObject({
        code: 'storage_failed',
      })
      await expect(listed(through({ maxAttempts: 2 }), folderOf())).rejects.toMatchObject({ code: 'storage_failed' })
    })
  })
})

type Fault = 'pass' | 'reset' | 'hang' | 'hang-body' | 'lose-answer' | 'cut-body' | 'unconditional' | number

interface Proxy {
  asked: string[]
  address: string
  /** Resolves when it is asked for something. */
  nextRequest(): Promise<void>
  close(): Promise<void>
}

/** Stands before the server and does to the n-th request what `fault` says. Signatures name the host, so it is kept. */
async function openProxy(fault: (n: number, method: string) => Fault): Promise<Proxy> {
  let n = 0
  const asked: string[] = []
  const target = new URL(server.endpoint)
  let isAsked = (): void => {}
  const proxy: Server = createServer((incoming, outgoing) => {
    const what = fault((n += 1), incoming.method ?? '')
    isAsked()
    if (what === 'hang') return void incoming.resume()
    if (what === 'reset') return void incoming.socket.destroy()
    if (typeof what === 'number') return void outgoing.writeHead(what).end()
    const { headers } = incoming
    asked.push(`${incoming.method} ${incoming.url}`)
    const { hostname, port } = target
    const forwarded = request({ hostname, port, method: incoming.method, path: incoming.url, headers }, (answer) => {
      if (what === 'lose-answer') return void answer.resume().on('end', () => incoming.socket.destroy())
      if (what === 'unconditional' && answer.statusCode === 412) {
        answer.resume()
        return void outgoing.writeHead(200).end()
      }
      outgoing.writeHead(answer.statusCode ?? 500, answer.headers)
      if (what === 'hang-body') return void answer.once('data', (chunk: Buffer) => outgoing.write(chunk))
      if (what !== 'cut-body') return void answer.pipe(outgoing)
      return void answer.once('data', (chunk: Buffer) =>
        outgoing.write(chunk.subarray(0, 100), () => incoming.socket.destroy()),
      )
    })
    forwarded.on('error', () => incoming.socket.destroy())
    incoming.pipe(forwarded)
    return undefined
  })
  await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve))
  return {
    asked,
    nextRequest: () => new Promise<void>((resolve) => void (isAsked = resolve)),
    address: `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`,
    close: () => new Promise((resolve) => (proxy.closeAllConnections(), proxy.close(() => resolve()))),
  }
}
