import { chmodSync, existsSync, mkdtempSync, readdirSync, realpathSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import { afterAll, afterEach, beforeAll, expect, vi } from 'vitest'
import type { EmbeddedPostgresOptions } from '../src/embedded/index.ts'
import { describeFolder } from '../src/embedded/folder.ts'
import { stopAbandoned } from '../src/embedded/member.ts'
import { findServer, type Server } from '../src/embedded/server.ts'
import { compileProgram, runProgram, type Program, type Running } from './embedded-program.ts'

/** Folders of embedded servers, programs that use them, and a look at what they do. */
export interface EmbeddedBed {
  /** Everything is in here. */
  scratch: string
  /** The folder for all tests that do not need a fresh one: making a database takes most of a second. */
  directory: string
  freshFolder(): string
  run(options: EmbeddedPostgresOptions, more?: Parameters<typeof runProgram>[2]): Running
}

/** To be called once in a test file. What a test leaves running is ended after it. */
export function embeddedBed(): EmbeddedBed {
  const scratch = realpathSync(mkdtempSync(join(tmpdir(), 'fencepost-embedded-')))
  const directory = join(scratch, 'postgres')
  const programs: Running[] = []
  let program: Program

  beforeAll(() => {
    chmodSync(scratch, 0o755)
    program = compileProgram()
  })

  afterEach(async () => {
    for (const { child } of programs.splice(0)) child.kill('SIGKILL')
    for (const name of readdirSync(scratch)) {
      const path = join(scratch, name)
      if (existsSync(join(path, 'users'))) await stopLeft(path)
      if (path !== directory) rmSync(path, { recursive: true, force: true })
    }
  })

  afterAll(() => {
    program.remove()
    rmSync(scratch, { recursive: true, force: true })
  })

  return {
    scratch,
    directory,
    freshFolder: () => mkdtempSync(join(scratch, 'fresh-')),
    run(options, more) {
      const running = runProgram(program, { durable: false, ...options }, more)
      programs.push(running)
      return running
    },
  }
}

export function serverOf(directory: string): Server | undefined {
  return findServer(describeFolder(directory, undefined))
}

export function usersOf(directory: string): string[] {
  return readdirSync(join(directory, 'users'))
}

/** What is being made in the folder: a database, or a copy of the binaries. */
export function unfinishedIn(directory: string): string[] {
  return readdirSync(directory).filter((name) => name.startsWith('new-'))
}

/** The values of one statement's rows. */
export async function ask(url: string | undefined, text: string): Promise<unknown[]> {
  const client = new pg.Client({ connectionString: url ?? 'postgres://not-opened' })
  client.on('error', () => {})
  await client.connect()
  try {
    return (await client.query<unknown[]>({ text, rowMode: 'array' })).rows.flat()
  } finally {
    await client.end()
  }
}

// Those that were just killed count as users until the system has ended them.
async function stopLeft(path: string): Promise<void> {
  await vi.waitFor(async () => expect(await stopAbandoned(describeFolder(path, undefined))).toBe(true), 10_000)
}
