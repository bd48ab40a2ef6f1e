import { spawn } from 'node:child_process'
import { readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it, vi } from 'vitest'
import { ask, embeddedBed, serverOf, unfinishedIn, usersOf } from '../../test/embedded-bed.ts'
import { openEmbeddedPostgres } from './embedded-postgres.ts'
import { describeFolder } from './folder.ts'
import { lockFolder } from './folder-lock.ts'
import { addUser, removeUser } from './users.ts'
import { patiently } from './waiting.ts'

const isRoot = process.getuid?.() === 0
const { directory, freshFolder, run } = embeddedBed()

describe('several users', () => {
  it('join the running server, which stops with the last of them', async () => {
    const [starter, joiner] = [run({ directory }), run({ directory })]
    const first = await starter.opened
    const second = await joiner.opened
    expect(second.url).toBe(first.url)
    starter.tell('exit')
    await starter.ended
    const own = await openEmbeddedPostgres({ directory })
    joiner.tell('close')
    await vi.waitFor(() => expect(usersOf(directory)).toHaveLength(1), 10_000)
    expect(await ask(own.url, 'select 1')).toEqual([1])
    await own.close()
    expect(serverOf(directory)).toBeUndefined()
  })

  it('may begin at the same instant on an empty folder', async () => {
    const directory = freshFolder()
    const together = Array.from({ length: 4 }, () => run({ directory }))
    const opened = await Promise.all(together.map((running) => running.opened))
    expect(new Set(opened.map(({ url }) => url)).size).toBe(1)
    expect(await ask(opened[0]?.url, 'select 1')).toEqual([1])
    for (const running of together) running.tell('exit')
    await Promise.all(together.map((running) => running.ended))
    expect(serverOf(directory)).toBeUndefined()
    expect(readFileSync(join(directory, 'server.log'), 'utf8').match(/starting PostgreSQL/g)).toHaveLength(1)
  })

  it('may be uses of one process', async () => {
    const [first, second] = await Promise.all([
      openEmbeddedPostgres({ directory, durable: false }),
      openEmbeddedPostgres({ directory, durable: false }),
    ])
    await first.close()
    expect(await ask(second.url, 'select 1')).toEqual([1])
    await second.close()
    expect(serverOf(directory)).toBeUndefined()
  })

  it('come and go all the time without ever finding the server gone', async () => {
    const visit = async () => {
      const { url, close } = await openEmbeddedPostgres({ directory, durable: false })
      expect(await ask(url, 'select 1')).toEqual([1])
      await close()
    }
    const visitors = Array.from({ length: 4 }, async () => {
      for (let left = 5; left > 0; left -= 1) await visit()
    })
    await Promise.all(visitors)
    expect(serverOf(directory)).toBeUndefined()
  })
})

describe('a user who leaves', () => {
  it('does not stop the server when another one has come while the lock was held', async () => {
    const { url, close } = await openEmbeddedPostgres({ directory, durable: false })
    const folder = describeFolder(directory, undefined)
    const lock = await patiently(lockFolder(folder, 0))
    const closing = close() // sees that nobody is left, and waits for the lock
    const user = addUser(folder)
    lock.release()
    await closing
    expect(await ask(url, 'select 1')).toEqual([1])
    removeUser(folder, user)
  })
})

describe('after SIGKILL', () => {
  it('of the one who started it, the server goes on for the others and stops with them', async () => {
    const starter = run({ directory })
    await starter.opened
    const joiner = run({ directory })
    const { url } = await joiner.opened
    starter.child.kill('SIGKILL')
    await starter.ended
    expect(await ask(url, 'select 1')).toEqual([1])
    joiner.tell('exit')
    await joiner.ended
    expect(serverOf(directory)).toBeUndefined()
  })

  it('of the last user, the next one joins the server and stops it', async () => {
    const killed = run({ directory })
    await killed.opened
    const server = serverOf(directory)
    killed.child.kill('SIGKILL')
    await killed.ended
    expect(usersOf(directory)).toHaveLength(1)
    const next = await openEmbeddedPostgres({ directory })
    expect(serverOf(directory)).toEqual(server)
    await next.close()
    expect(serverOf(directory)).toBeUndefined()
    expect(usersOf(directory)).toEqual([])
  })

  it('of everything, the folder works, also when somebody else has the pid of the server', async () => {
    const killed = run({ directory, durable: true })
    const { url } = await killed.opened
    await ask(url, 'create table survivor as select 1 as one')
    process.kill(serverOf(directory)?.pid ?? 0, 'SIGKILL')
    killed.child.kill('SIGKILL')
    await killed.ended
    // Alive and of the same account, which is enough to make Postgres refuse to start.
    const { uid, gid } = statSync(join(directory, 'data'))
    const other = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)'], isRoot ? { uid, gid } : {})
    const pidFile = join(directory, 'data', 'postmaster.pid')
    writeFileSync(pidFile, readFileSync(pidFile, 'utf8').replace(/^\d+/, String(other.pid)))
    const next = await openEmbeddedPostgres({ directory, durable: false })
    expect(await ask(next.url, 'select one from survivor')).toEqual([1])
    await next.close()
    expect(serverOf(directory)).toBeUndefined()
    expect(other.kill()).toBe(true)
  })

  it('in the middle of initdb, the folder works', async () => {
    const directory = freshFolder()
    const running = run({ directory })
    await vi.waitFor(() => expect(unfinishedIn(directory)).toHaveLength(1), { timeout: 10_000, interval: 5 })
    running.child.kill('SIGKILL')
    await running.ended
    const { url, close } = await openEmbeddedPostgres({ directory, durable: false })
    expect(await ask(url, 'select 1')).toEqual([1])
    await close()
    expect(unfinishedIn(directory)).toEqual([])
  })

  it('of one who was starting or stopping it, nobody waits for the lock', async () => {
    const killed = run({ directory })
    await killed.opened
    killed.child.kill('SIGKILL')
    await killed.ended
    const [user = ''] = usersOf(directory)
    writeFileSync(join(directory, 'lock', user), '')
    const { close } = await openEmbeddedPostgres({ directory, startTimeoutMs: 5_000 })
    await close()
    expect(serverOf(directory)).toBeUndefined()
  })
})
