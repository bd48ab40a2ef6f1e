import type { Socket } from 'node:net'
import type pg from 'pg'

const patienceMs = 1_000

/** Says goodbye, and hangs up if that is not answered: a server that is stuck must not keep a worker from stopping. */
export async function hangUp(client: pg.Client): Promise<void> {
  const { stream } = (client as unknown as { connection: { stream: Socket } }).connection
  const timer = setTimeout(() => stream.destroy(), patienceMs)
  await client.end().catch(() => {}) // it may be broken already
  clearTimeout(timer)
}
