import { spawn, type ChildProcess } from 'node:child_process'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest'
import { compileProgram, type Program } from '../../test/embedded-program.ts'
import { describeFolder, type Folder } from './folder.ts'
import { lockFolder, lockFolderAtExit, type FolderLock } from './folder-lock.ts'
import { isRunning, ownTag } from './process-tag.ts'
import { blocking, patiently } from './waiting.ts'

vi.mock('./process-tag.ts', { spy: true })

let program: Program
let folder: Folder

beforeAll(() => {
  program = compileProgram()
})
beforeEach(() => {
  folder = describeFolder(mkdtempSync(join(tmpdir(), 'fencepost-lock-')), undefined)
})
afterEach(() => rmSync(folder.path, { recursive: true }))
afterAll(() => program.remove())

describe('the lock of a folder', () => {
  it('has one holder at a time, among processes that are killed while they hold it', async () => {
    const counter = join(folder.path, 'counter')
    writeFileSync(counter, '')
    // Each appends what it read, plus one: two holders at a time would read the same.
    const count = `
      const { appendFileSync, readFileSync } = await import('node:fs')
      const lock = await patiently(lockFolder(folder, 20_000))
      const next = readFileSync(${JSON.stringify(counter)}, 'utf8').split('\\n').length
      await new Promise((resolve) => setTimeout(resolve, 1))
      appendFileSync(${JSON.stringify(counter)}, next + '\\n')
      if (next % 7 === 0) process.kill(process.pid, 'SIGKILL')
      lock.release()`
    // All begin together, when the last of them is there.
    const begin = `
      const { readdirSync, writeFileSync } = await import('node:fs')
      writeFileSync(folder.path + '/ready-' + process.pid, '')
      while (readdirSync(folder.path).filter((name) => name.startsWith('ready-')).length < 6) {}`
    const script = `${begin}\n for (let left = 12; left > 0; left -= 1) {${count}}`
    const children = Array.from({ length: 6 }, () => runUnderLock(script))
    await Promise.all(children.map((child) => new Promise((resolve) => child.once('exit', resolve))))
    const numbers = readFileSync(counter, 'utf8').trim().split('\n').map(Number)
    expect(numbers).toEqual(numbers.map((_, index) => index + 1))
    expect(numbers.length).toBeGreaterThanOrEqual(28) // four killed, and two that have counted to the end
  })

  it('is not taken from the next owner by one who comes late to break it', async () => {
    mkdirSync(folder.lock)
    writeFileSync(join(folder.lock, '99999999_gone.aaaaaa'), '')
    let next: FolderLock | undefined
    // Between the late one's look at the owner and what it does about it, another breaks the lock and takes it.
    vi.mocked(isRunning).mockImplementationOnce(() => {
      next = blocking(lockFolder(folder, 0))
      return false
    })
    await expect(patiently(lockFolder(folder, -1))).rejects.toMatchObject({ details: { pid: process.pid } })
    expect(next).toBeDefined()
    expect(readdirSync(folder.lock)).toEqual([expect.stringMatching(ownTag())])
  })

  it('is not held by a process that merely has the pid of its owner', async () => {
    mkdirSync(folder.lock)
    writeFileSync(join(folder.lock, `${process.pid}_00000000-1.aaaaaa`), '')
    const lock = await patiently(lockFolder(folder, 0))
    expect(readdirSync(folder.lock)).toEqual([expect.stringMatching(ownTag())])
    lock.release()
    expect(readdirSync(folder.lock)).toEqual([])
    expect(readdirSync(folder.path)).toEqual(['lock'])
  })

  it('names the process that keeps it too long', async () => {
    const holder = runUnderLock('await patiently(lockFolder(folder, 1000)); setInterval(() => {}, 1000)')
    await vi.waitFor(() => expect(readdirSync(folder.lock)).toHaveLength(1), 10_000)
    await expect(patiently(lockFolder(folder, 1))).rejects.toMatchObject({
      code: 'embedded_start_failed',
      details: { pid: holder.pid },
    })
    holder.kill('SIGKILL')
  })

  it('is not waited for at exit when this process holds it itself', async () => {
    const lock = await patiently(lockFolder(folder, 0))
    await expect(patiently(lockFolder(folder, 1))).rejects.toThrow()
    expect(blocking(lockFolderAtExit(folder, 0))).toBe(lock)
  })
})

function runUnderLock(code: string): ChildProcess {
  const from = (name: string) => JSON.stringify(pathToFileURL(join(program.directory, 'src', 'embedded', name)).href)
  const script = `
    import { lockFolder } from ${from('folder-lock.js')}
    import { patiently } from ${from('waiting.js')}
    const folder = ${JSON.stringify(folder)}
    ${code}`
  return spawn(process.execPath, ['--input-type=module', '-e', script], { stdio: ['ignore', 'ignore', 'inherit'] })
}
