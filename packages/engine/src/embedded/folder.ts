import {
  chmodSync,
  existsSync,
  lchownSync,
  mkdirSync,
  readdirSync,
  realpathSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { FencepostError } from '../errors.ts'
import { chooseAccount, closedParent, type Account } from './account.ts'

/** Where everything of one embedded server is. */
export interface Folder {
  path: string
  /** The data directory of Postgres. */
  data: string
  /** One file for each user of the server; see users.ts. */
  users: string
  /** Held to start, join or stop the server; see folder-lock.ts. */
  lock: string
  password: string
  log: string
  /** Owns the folder and runs the server, when this process is root. */
  account: Account | undefined
}

/** Makes the folder, or takes the one that is there. */
export function openFolder(directory: string): Folder {
  const wanted = resolve(directory)
  const account = chooseAccount(wanted)
  const firstMade = mkdirSync(dirname(wanted), { recursive: true })
  if (account && firstMade !== undefined) letIn(firstMade, dirname(wanted))
  mkdirSync(wanted, { recursive: true, mode: 0o700 })
  // Everyone has to find the same path, by whatever links they came: the server is recognised by its data directory.
  const folder = describeFolder(realpathSync(wanted), account)
  refuseForeignFolder(folder.path)
  refuseClosedParent(folder.path, account)
  giveDirectory(folder.path, folder)
  giveDirectory(folder.users, folder)
  const ignore = join(folder.path, '.gitignore')
  if (!existsSync(ignore)) giveFile(ignore, '*\n', folder)
  return folder
}

/** The places in a folder that is known to exist. */
export function describeFolder(path: string, account: Account | undefined): Folder {
  return {
    path,
    data: join(path, 'data'),
    users: join(path, 'users'),
    lock: join(path, 'lock'),
    password: join(path, 'password'),
    log: join(path, 'server.log'),
    account,
  }
}

/** A directory for the account alone. */
export function giveDirectory(path: string, folder: Folder): void {
  mkdirSync(path, { recursive: true, mode: 0o700 })
  give(path, folder)
}

/** A new file for the account alone. */
export function giveFile(path: string, content: string, folder: Folder): void {
  rmSync(path, { force: true })
  writeFileSync(path, content, { mode: 0o600, flag: 'wx' })
  give(path, folder)
}

/**
 * What root makes belongs to the account, so that its owner can go on without root. The owner of a folder could also
 * put links there, so none is ever followed: root would give away what they point to.
 */
export function give(path: string, folder: Folder): void {
  if (folder.account) lchownSync(path, folder.account.uid, folder.account.gid)
}

// Root gives the folder to another account, which must never happen to a folder that was somebody's already.
function refuseForeignFolder(path: string): void {
  const names = readdirSync(path).filter((name) => name !== 'lost+found')
  if (names.length === 0 || names.includes('users')) return
  throw new FencepostError(
    'options_invalid',
    `${path} holds other files, and the embedded Postgres needs a folder of its own. Give another directory.`,
    { details: { directory: path } },
  )
}

// Under a strict umask root has just made directories that the account could not enter.
function letIn(firstMade: string, lastMade: string): void {
  for (let made = lastMade; made.length >= firstMade.length; made = dirname(made)) {
    chmodSync(made, statSync(made).mode | 0o111)
  }
}

// Not put somewhere else instead: the folder may be on the one volume that is kept.
function refuseClosedParent(path: string, account: Account | undefined): void {
  const closed = closedParent(path, account)
  if (!account || closed === undefined) return
  throw new FencepostError(
    'embedded_not_writable',
    `Postgres does not run as root, so it runs as uid ${account.uid}, which cannot enter ${closed} on the way to ` +
      `${path}. Give a directory outside of ${closed}, let others enter it (chmod o+x), run as an ordinary user, ` +
      'or set DATABASE_URL to use a server of your own.',
    { details: { directory: path, closed, uid: account.uid } },
  )
}
