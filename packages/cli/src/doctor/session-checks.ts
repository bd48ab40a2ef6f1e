import { randomBytes } from 'node:crypto'
import { firstRow, type Check, type Finding, type Session } from './check.ts'

// Whether a connection is one session of Postgres for as long as it lasts. Behind a pooler that gives every transaction
// another session it is not: what LISTEN and advisory locks do is lost, and wake-ups never arrive.

const heardWithinMs = 2_000

const advice =
  'A pooler in transaction mode is in between. Jobs stay correct, but workers hear of work and cancels only by looking. ' +
  'Give --database the address of Postgres itself, or of a pooler in session mode.'

/** State that is set in a session must still be there when others have used the database meanwhile. */
export const sessionCheck: Check = {
  name: 'session',
  async examine({ session, connect }) {
    const other = await connect()
    try {
      const mark = randomBytes(8).toString('hex')
      const { pid } = await firstRow<{ pid: number }>(
        session,
        `select pg_backend_pid() as pid, set_config('fencepost.doctor', $1, false) as mark`,
        [mark],
      )
      // A pooler that would hand the session on hands it to this transaction, which keeps it until it ends.
      await other.query('begin')
      await other.query('select 1')
      const now = await firstRow<{ pid: number; mark: string | null }>(
        session,
        `select pg_backend_pid() as pid, current_setting('fencepost.doctor', true) as mark`,
      )
      await other.query('rollback')
      if (now.pid === pid && now.mark === mark) return { state: 'ok', message: 'A connection keeps its session.' }
      return { state: 'warn', message: 'A connection does not keep its session between transactions.', advice }
    } finally {
      await other.end()
    }
  },
}

/** A notification that one connection sends must reach another that listens. */
export const listenCheck: Check = {
  name: 'listen',
  async examine({ connect }) {
    const [listener, sender] = await Promise.all([connect(), connect()])
    try {
      return await listenAndNotify(listener, sender)
    } finally {
      await Promise.all([listener.end(), sender.end()])
    }
  },
}

async function listenAndNotify(listener: Session, sender: Session): Promise<Finding> {
  const channel = `fencepost_doctor_${randomBytes(6).toString('hex')}`
  let timer: NodeJS.Timeout | undefined
  const heard = new Promise<boolean>((resolve) => {
    timer = setTimeout(() => resolve(false), heardWithinMs)
    listener.on('notification', (message) => {
      if (message.channel === channel) resolve(true)
    })
  })
  try {
    await listener.query(`listen ${channel}`)
    const sentAt = performance.now()
    await sender.query('select pg_notify($1, $2)', [channel, ''])
    if (await heard) {
      const ms = Math.round(performance.now() - sentAt)
      return { state: 'ok', message: `A notification arrives after ${ms} ms.`, details: { ms } }
    }
    return { state: 'warn', message: `A notification does not arrive within ${heardWithinMs} ms.`, advice }
  } finally {
    clearTimeout(timer)
  }
}
