import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { beforeAll, describe, expect, it, vi } from 'vitest'
import { ask, embeddedBed, serverOf, usersOf } from '../../test/embedded-bed.ts'
import { openEmbeddedPostgres } from './embedded-postgres.ts'

const isRoot = process.getuid?.() === 0
const { scratch, directory, freshFolder, run } = embeddedBed()

beforeAll(async () => {
  const { close } = await openEmbeddedPostgres({ directory, durable: false })
  await close()
})

describe('an embedded Postgres', () => {
  it('keeps its data from run to run', async () => {
    const first = await openEmbeddedPostgres({ directory, durable: false, settings: { work_mem: '7MB' } })
    const settings = "select current_database(), current_setting('fsync'), current_setting('work_mem')"
    expect(await ask(first.url, settings)).toEqual(['fencepost', 'off', '7MB'])
    await ask(first.url, "create table kept as select 'łódź' as word")
    await first.close()
    expect(serverOf(directory)).toBeUndefined()

    const second = await openEmbeddedPostgres({ directory })
    expect(await ask(second.url, settings)).toEqual(['fencepost', 'on', '4MB'])
    expect(await ask(second.url, 'select word from kept where upper(word) = $$ŁÓDŹ$$')).toEqual(['łódź'])
    await Promise.all([second.close(), second.close()])
    expect(serverOf(directory)).toBeUndefined()
    expect(usersOf(directory)).toEqual([])
  })

  it('has a server that listens on loopback only, and wants the password of the folder', async () => {
    const { url, close } = await openEmbeddedPostgres({ directory, durable: false })
    expect(statSync(join(directory, 'password')).mode & 0o077).toBe(0)
    expect(
      await ask(url, "select current_setting('listen_addresses'), current_setting('unix_socket_directories')"),
    ).toEqual(['127.0.0.1', ''])
    await expect(ask(url.replace(/:[^:@]+@/, ':wrong@'), 'select 1')).rejects.toMatchObject({ code: '28P01' })
    await close()
  })
})

describe('a clear error', () => {
  it('tells that the folder cannot be written', async () => {
    const file = join(scratch, 'a-file')
    writeFileSync(file, '')
    await expect(openEmbeddedPostgres({ directory: join(file, 'postgres') })).rejects.toMatchObject({
      code: 'embedded_not_writable',
      message: expect.stringContaining('DATABASE_URL'),
    })
    if (isRoot) {
      const closed = join(scratch, 'closed')
      mkdirSync(closed, { mode: 0o755 })
      const other = run({ directory: join(closed, 'postgres') }, { uid: 65534, gid: 65534 })
      expect(await other.opened).toMatchObject({ code: 'embedded_not_writable' })
    }
  })

  it.runIf(isRoot)('tells root which directory its server cannot enter', async () => {
    const closed = join(scratch, 'of-root')
    mkdirSync(closed, { mode: 0o700 })
    await expect(openEmbeddedPostgres({ directory: join(closed, 'postgres') })).rejects.toMatchObject({
      code: 'embedded_not_writable',
      details: { closed },
    })
  })

  it('tells that the data are of another version', async () => {
    const version = join(directory, 'data', 'PG_VERSION')
    writeFileSync(version, '16\n')
    await expect(openEmbeddedPostgres({ directory })).rejects.toMatchObject({
      code: 'embedded_version',
      details: { found: 16, expected: 18 },
    })
    expect(usersOf(directory)).toEqual([])
    writeFileSync(version, '18\n')
  })

  it('shows the log of a server that does not start', async () => {
    await expect(openEmbeddedPostgres({ directory, settings: { shared_buffers: 'plenty' } })).rejects.toMatchObject({
      code: 'embedded_start_failed',
      message: expect.stringMatching(/server\.log.*invalid value for parameter "shared_buffers": "plenty"/s),
    })
    const { close } = await openEmbeddedPostgres({ directory, durable: false })
    await close()
  })

  it('shows the log of a server that is not ready in time, and stops it', async () => {
    await expect(openEmbeddedPostgres({ directory, startTimeoutMs: 30 })).rejects.toMatchObject({
      code: 'embedded_start_failed',
      message: expect.stringContaining(join(directory, 'server.log')),
    })
    await vi.waitFor(() => expect(serverOf(directory)).toBeUndefined(), 10_000)
  })

  it('refuses a folder that holds other files', async () => {
    const directory = freshFolder()
    writeFileSync(join(directory, 'letter.txt'), '')
    const owner = statSync(directory).uid
    await expect(openEmbeddedPostgres({ directory })).rejects.toMatchObject({ code: 'options_invalid' })
    expect(statSync(directory).uid).toBe(owner)
  })

  it.runIf(canMount())('tells that the disk is full', async () => {
    const directory = freshFolder()
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=20m', 'tmpfs', directory])
    try {
      const opening = openEmbeddedPostgres({ directory: join(directory, 'postgres'), durable: false })
      await expect(opening).rejects.toMatchObject({ code: 'embedded_disk_full' })
    } finally {
      execFileSync('umount', [directory])
    }
  })
})

function canMount(): boolean {
  if (!isRoot || process.platform !== 'linux') return false
  const directory = mkdtempSync(join(tmpdir(), 'fencepost-mount-'))
  try {
    execFileSync('mount', ['-t', 'tmpfs', 'tmpfs', directory], { stdio: 'ignore' })
    execFileSync('umount', [directory])
    return true
  } catch {
    return false
  } finally {
    rmSync(directory, { recursive: true })
  }
}
