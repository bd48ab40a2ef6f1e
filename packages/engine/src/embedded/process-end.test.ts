import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it, vi } from 'vitest'
import { ask, embeddedBed, serverOf, unfinishedIn, usersOf } from '../../test/embedded-bed.ts'

const { directory, freshFolder, run } = embeddedBed()

describe('a program that ends', () => {
  it.each(['exit', 'return', 'throw'] as const)('stops the server on %s, before the process has ended', async (how) => {
    const running = run({ directory })
    await running.opened
    running.tell(how)
    expect(await running.ended).toEqual({ code: how === 'throw' ? 1 : 0, signal: null })
    expect(serverOf(directory)).toBeUndefined()
    expect(usersOf(directory)).toEqual([])
  })
})

describe('a signal', () => {
  it.each(['SIGINT', 'SIGTERM', 'SIGHUP'] as const)('%s stops the server and then ends the process', async (signal) => {
    const running = run({ directory })
    await running.opened
    running.child.kill(signal)
    expect(await running.ended).toEqual({ code: null, signal })
    expect(serverOf(directory)).toBeUndefined()
  })

  it('a program with a handler of its own decides when it ends', async () => {
    const before = "process.once('SIGINT', () => process.stdin.once('data', () => process.exit(7)))"
    const running = run({ directory }, { before })
    const { url } = await running.opened
    running.child.kill('SIGINT')
    // A second program comes and goes: by then the signal has long been handled.
    const other = run({ directory })
    await other.opened
    other.tell('exit')
    await other.ended
    expect(await ask(url, 'select 1')).toEqual([1])
    running.tell('close')
    expect(await running.ended).toEqual({ code: 7, signal: null })
    await vi.waitFor(() => expect(serverOf(directory)).toBeUndefined(), 10_000)
  })

  it('a listener of signal-exit does not keep the process alive', async () => {
    // What signal-exit 4 does: it acts only when no listener but its own is there.
    const before = `
      const emitter = (globalThis[Symbol.for('signal-exit emitter')] = { count: 1 })
      process.on('SIGINT', function listener() {
        if (process.listeners('SIGINT').length !== emitter.count) return
        process.off('SIGINT', listener)
        process.kill(process.pid, 'SIGINT')
      })`
    const running = run({ directory }, { before })
    await running.opened
    running.child.kill('SIGINT')
    expect(await running.ended).toEqual({ code: null, signal: 'SIGINT' })
    expect(serverOf(directory)).toBeUndefined()
  })

  it('Ctrl-C in a terminal does not reach a server that others use', async () => {
    const starter = run({ directory }, { detached: true }) // a process group of its own, as a terminal makes
    await starter.opened
    const other = run({ directory })
    const { url } = await other.opened
    process.kill(-(starter.child.pid ?? 0), 'SIGINT')
    expect(await starter.ended).toEqual({ code: null, signal: 'SIGINT' })
    expect(await ask(url, 'select 1')).toEqual([1])
  })

  it('SIGTERM in the middle of initdb ends that too', async () => {
    const directory = freshFolder()
    const running = run({ directory })
    await vi.waitFor(() => expect(unfinishedIn(directory)).toHaveLength(1), { timeout: 10_000, interval: 5 })
    running.child.kill('SIGTERM')
    expect(await running.ended).toEqual({ code: null, signal: 'SIGTERM' })
    expect(unfinishedIn(directory)).toEqual([])
    expect(readdirSync(join(directory, 'lock'))).toEqual([])
    expect(usersOf(directory)).toEqual([])
  })
})
