import { connect, type Socket } from 'node:net'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { submitted } from '../../engine/test/bed.ts'
import { echo, openServerBed, type ServerBed } from './server-bed.ts'

// More than the system keeps for a connection between two processes of this machine, so the server has to.
const jobs = 20
const jobBytes = 1_000_000
const cutOff: Record<string, unknown>[] = []
const logger = {
  info() {},
  warn: (fields: Record<string, unknown>, message: string) => void (message === 'answer_unread' && cutOff.push(fields)),
  error() {},
}

let on: ServerBed
const sockets: Socket[] = []
beforeAll(async () => {
  on = await openServerBed({ maxAnswerBytes: 2 * jobs * jobBytes, maxUnreadBytes: 1.5 * jobs * jobBytes, logger })
  for (let nth = 0; nth < jobs; nth += 1) await submitted(on.engine.submit(echo, { text: 'x'.repeat(jobBytes) }))
})
afterAll(() => {
  for (const socket of sockets) socket.destroy()
  return on.close()
})

/** Asks for all jobs with their payloads, and reads only the first bytes of the answer. */
async function askWithoutReading(token: string): Promise<void> {
  const { hostname, port } = new URL(on.url)
  const socket = connect({ host: hostname, port: Number(port) })
  sockets.push(socket)
  socket.on('error', () => {}) // it was cut off
  socket.write(`GET /jobs?include=payload HTTP/1.1\r\nHost: ${hostname}\r\nAuthorization: Bearer ${token}\r\n\r\n`)
  await new Promise<void>((resolve) => socket.once('readable', resolve)) // and is not read
}

test('a caller who does not read his answers is cut off, the oldest first, and others get theirs', async () => {
  const [slow, prompt] = [await on.token('viewer', 'slow'), await on.token('viewer', 'prompt')]
  await askWithoutReading(slow)
  expect(cutOff).toEqual([])
  await askWithoutReading(slow)
  expect(cutOff).toMatchObject([{ caller: 'slow', bytes: expect.any(Number) }])
  const answer = await on.http('GET', '/jobs?include=payload', {
    token: prompt,
    headers: { 'accept-encoding': 'identity' },
  })
  expect(answer.json).toHaveLength(jobs)
  expect(cutOff.map(({ caller }) => caller)).toEqual(['slow', 'slow'])
})
