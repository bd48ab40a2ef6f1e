import { readFileSync, statSync } from 'node:fs'
import { dirname, join } from 'node:path'

/** The account that Postgres runs under when this process is root, which Postgres itself refuses to be. */
export interface Account {
  uid: number
  gid: number
}

const preferred = ['postgres', '_postgres', 'nobody']

/**
 * None for an ordinary user. For root: whoever owns the data, or the place where it will be, so that the owner of a
 * project can go on with what root began; in root's own places `postgres`, or `nobody`.
 */
export function chooseAccount(directory: string): Account | undefined {
  if (process.getuid?.() !== 0) return undefined
  const data = join(directory, 'data')
  const owner = nearestOwner(data)
  const accounts = readAccounts()
  if (owner.account.uid !== 0) {
    const known = accounts.find(({ uid }) => uid === owner.account.uid)
    // initdb looks its user up by name, so only a known account can begin; an existing folder needs its owner anyway.
    if (known) return { uid: known.uid, gid: known.gid }
    if (owner.path === data) return owner.account
  }
  const account = preferred.map((name) => accounts.find((known) => known.name === name)).find((known) => known)
  return account && { uid: account.uid, gid: account.gid }
}

/** The first directory on the way to the path that the account may not enter. */
export function closedParent(path: string, account: Account | undefined): string | undefined {
  if (!account) return undefined
  const parents: string[] = []
  for (let parent = dirname(path); ; parent = dirname(parent)) {
    parents.unshift(parent)
    if (parent === dirname(parent)) break
  }
  return parents.find((parent) => !mayEnter(parent, account))
}

function mayEnter(directory: string, account: Account): boolean {
  const { mode, uid, gid } = statSync(directory)
  if (uid === account.uid) return (mode & 0o100) !== 0
  if (gid === account.gid) return (mode & 0o010) !== 0
  return (mode & 0o001) !== 0
}

function nearestOwner(path: string): { path: string; account: Account } {
  const found = statSync(path, { throwIfNoEntry: false })
  if (!found) return nearestOwner(dirname(path))
  return { path, account: { uid: found.uid, gid: found.gid } }
}

function readAccounts(): { name: string; uid: number; gid: number }[] {
  let text: string
  try {
    text = readFileSync('/etc/passwd', 'utf8')
  } catch {
    return []
  }
  return text
    .split('\n')
    .map((line) => line.split(':'))
    .map(([name = '', , uid, gid]) => ({ name, uid: Number(uid), gid: Number(gid) }))
    .filter(({ uid, gid }) => uid > 0 && gid >= 0)
}
