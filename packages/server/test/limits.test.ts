import { connect, type Socket } from 'node:net'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { submitted } from '../../engine/test/bed.ts'
import type { Server } from '../src/index.ts'
import { echo, openServerBed, type ServerBed } from './server-bed.ts'
import { view } from './viewer.ts'

let on: ServerBed
const sockets: Socket[] = []
beforeAll(async () => {
  on = await openServerBed()
})
afterEach(() => {
  for (const socket of sockets.splice(0)) socket.destroy()
})
afterAll(() => on.close())

/** What a bare connection is told when it asks for /healthz; empty when it was dropped. */
async function ask(socket: Socket): Promise<string> {
  return new Promise((resolve) => {
    socket.once('data', (some) => resolve(some.toString()))
    socket.once('close', () => resolve(''))
    socket.on('error', () => {}) // it was dropped
    socket.write('GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n')
  })
}
const dial = ({ port }: Server) => {
  const socket = connect(port, '127.0.0.1')
  sockets.push(socket)
  return socket
}

test('more streams than maxStreams are 429 with Retry-After, until one of them has ended', async () => {
  const { url } = await on.open({ maxStreams: 2 })
  const path = `/jobs/${await submitted(on.engine.submit(echo, {}))}/events`
  const first = await view(url, path)
  const second = await view(url, '/events')
  const init = { url, headers: { accept: 'text/event-stream' } }
  for (const refusedPath of [path, '/events']) {
    const refused = await on.http('GET', refusedPath, init)
    expect(refused).toMatchObject({ status: 429, code: 'rate_limited' })
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0)
  }
  expect((await on.http('GET', path, { url })).status).toBe(200)
  first.leave()
  await expect.poll(async () => (await view(url, path).catch(() => undefined)) !== undefined).toBe(true)
  second.leave()
})

test('one caller has at most maxStreamsPerCaller streams, and takes none from the others', async () => {
  const { url } = await on.open({ maxStreamsPerCaller: 2 })
  const first = await view(url, '/events')
  const second = await view(url, '/events')
  const init = { url, headers: { accept: 'text/event-stream' } }
  expect(await on.http('GET', '/events', init)).toMatchObject({ status: 429, code: 'rate_limited' })
  const authorization = `Bearer ${await on.token('viewer')}`
  const other = await view(url, '/events', { authorization })
  first.leave()
  await expect
    .poll(async () => (await view(url, '/events', { authorization }).catch(() => undefined)) !== undefined)
    .toBe(true)
  for (const viewer of [second, other]) viewer.leave()
})

test('more connections than maxConnections are dropped, and those there are go on', async () => {
  const server = await on.open({ maxConnections: 3 })
  const three = [dial(server), dial(server), dial(server)]
  expect((await Promise.all(three.map(ask))).every((text) => text.startsWith('HTTP/1.1 200 '))).toBe(true)
  expect(await ask(dial(server))).toBe('')
  expect(await ask(three[0] as Socket)).toMatch(/^HTTP\/1\.1 200 /)
  three[1]?.destroy()
  await expect.poll(async () => ask(dial(server))).toMatch(/^HTTP\/1\.1 200 /)
})
