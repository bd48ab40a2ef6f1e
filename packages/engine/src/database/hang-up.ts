import type { Socket } from 'node:net'
import type pg from 'pg'

const patienceMs = 1_000

/** Breaks a connection whatever it is doing. Postgres rolls back when the statement that it may be running has ended. */
export function cutOff(client: Pick<pg.ClientBase, 'query'>): void {
  streamOf(client).destroy()
}

function streamOf(client: Pick<pg.ClientBase, 'query'>): Socket {
  return (client as unknown as { connection: { stream: Socket } }).connection.stream
}

/** Says goodbye, and hangs up if that is not answered: a server that is stuck must not keep a worker from stopping. */
export async function hangUp(client: pg.Client): Promise<void> {
  const stream = streamOf(client)
  const timer = setTimeout(() => stream.destroy(), patienceMs)
  await client.end().catch(() => {}) // it may be broken already
  clearTimeout(timer)
}
