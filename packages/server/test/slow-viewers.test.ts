import { connect, type Socket } from 'node:net'
import type { Attempt } from '@fencepost/engine'
import { afterEach, beforeAll, afterAll, beforeEach, describe, expect, test } from 'vitest'
import { claimOne, submitted } from '../../engine/test/bed.ts'
import { echo, openServerBed, type ServerBed } from './server-bed.ts'
import { view } from './viewer.ts'

let on: ServerBed
const sockets: Socket[] = []
beforeAll(async () => {
  on = await openServerBed({ pingMs: 100 })
})
beforeEach(() => on.bed.reset())
afterEach(() => {
  for (const socket of sockets.splice(0)) socket.destroy()
})
afterAll(() => on.close())

const large = 'x'.repeat(200_000)
/** More than the system keeps for a connection between two processes of this machine, so the server has to. */
const largeEvents = 100
const begun = async () => {
  const jobId = await submitted(on.engine.submit(echo, {}))
  return { jobId, attempt: await claimOne(on.engine) }
}
const emitLarge = async (attempt: Attempt, seen = async (_: number) => {}) => {
  for (let nth = 0; nth < largeEvents; nth += 1) {
    await attempt.emit('echo.large', { fields: { nth, large } })
    await seen(nth)
  }
}
const nths = (received: readonly { event: string; data: { fields: Record<string, unknown> | null } }[]) =>
  received.filter(({ event }) => event === 'echo.large').map(({ data }) => data.fields?.['nth'])
const expected = Array.from({ length: largeEvents }, (_, nth) => nth)
const openStreams = async () =>
  Number(/^fencepost_http_streams (\d+)$/m.exec((await on.http('GET', '/metrics')).text)?.[1] ?? 'NaN')

/** One who asks for a stream, and reads nothing of it until he is told to; says how many bytes came then. */
async function viewWithoutReading(path: string): Promise<{ read(): Promise<number> }> {
  const { hostname, port } = new URL(on.url)
  const socket = connect({ host: hostname, port: Number(port) })
  sockets.push(socket)
  socket.pause()
  socket.write(`GET ${path} HTTP/1.1\r\nHost: ${hostname}\r\nAccept: text/event-stream\r\n\r\n`)
  await expect.poll(openStreams).toBeGreaterThan(0)
  return {
    read: () =>
      new Promise((resolve) => {
        let bytes = 0
        socket.on('data', (some) => (bytes += some.length))
        socket.on('error', () => {}) // it was cut off
        socket.on('close', () => resolve(bytes))
        socket.resume()
      }),
  }
}

describe('a viewer who does not read', () => {
  test('is cut off once he has left a megabyte unread, and keeps nobody else waiting', async () => {
    const { jobId, attempt } = await begun()
    const slow = await viewWithoutReading(`/jobs/${jobId}/events`)
    const prompt = await view(on.url, `/jobs/${jobId}/events`)
    await prompt.until(2)
    expect(await openStreams()).toBe(2)
    await emitLarge(attempt, async (nth) => void (await prompt.until(3 + nth)))
    await expect.poll(openStreams, { timeout: 10_000 }).toBe(1)
    expect(await slow.read()).toBeLessThan(largeEvents * large.length)
    expect(nths(prompt.received)).toEqual(expected)
    await on.engine.complete(attempt, {})
    await prompt.ended
    expect(prompt.received.at(-1)?.data).toEqual({ reason: 'job_finished' })
  })

  test('even of the past is cut off when too much of the present waits for him', async () => {
    const { jobId, attempt } = await begun()
    await emitLarge(attempt)
    await viewWithoutReading(`/jobs/${jobId}/events`)
    await on.bed.query(
      `insert into fencepost.stored_events (job_id, ts, event)
       select $1, now(), 'echo.tick' from generate_series(1, 10001)`,
      [jobId],
    )
    await expect.poll(openStreams, { timeout: 10_000 }).toBe(0)
  })
})

test('a viewer who reads gets a past of any size', async () => {
  const { jobId, attempt } = await begun()
  await emitLarge(attempt)
  const viewer = await view(on.url, `/jobs/${jobId}/events`)
  await viewer.until(2 + largeEvents)
  expect(nths(viewer.received)).toEqual(expected)
  viewer.leave()
  await expect.poll(openStreams).toBe(0)
})
