import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { describe, expect, it, vi } from 'vitest'
import { isRunning, ownTag, startFromPs, tagOf } from './process-tag.ts'

describe('a process tag', () => {
  it('names this process, and not another one that gets its pid', () => {
    expect(ownTag()).toBe(tagOf(process.pid))
    expect(isRunning(ownTag())).toBe(true)
    expect(isRunning(`${process.pid}_00000000-1`)).toBe(false)
    expect(ownTag()).toMatch(/^[0-9a-z_-]+$/)
  })

  it('names a process until it has ended, also when nobody has looked at its end', async () => {
    // The shell does not wait for its child, which stays a zombie as long as the shell is stopped in `read`.
    const shell = spawn('sh', ['-c', 'sleep 100 & echo $!; read line'], { stdio: ['pipe', 'pipe', 'ignore'] })
    const [line] = (await once(shell.stdout, 'data')) as [Buffer]
    const pid = Number(line.toString())
    const tag = tagOf(pid) ?? ''
    expect(isRunning(tag)).toBe(true)
    process.kill(pid, 'SIGKILL')
    await vi.waitFor(() => expect(isRunning(tag)).toBe(false), 5_000)
    shell.kill('SIGKILL')
  })

  it.skipIf(process.platform === 'win32')('can be had from ps, where there is no /proc', async () => {
    const child = spawn('sleep', ['100'])
    await once(child, 'spawn')
    const start = Number(startFromPs(child.pid ?? 0))
    expect(Math.abs(start - Date.now() / 1000)).toBeLessThan(30)
    child.kill('SIGKILL')
    await once(child, 'exit')
    expect(startFromPs(child.pid ?? 0)).toBeUndefined()
  })

  it('is of nobody where there is no such process', () => {
    expect(tagOf(99_999_999)).toBeUndefined()
    expect(isRunning('99999999_unknown')).toBe(false)
    expect(isRunning('rubbish')).toBe(false)
  })
})
