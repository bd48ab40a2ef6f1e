import { randomUUID } from 'node:crypto'
import { mkdir, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { isRunning, ownTag } from './process-tag.ts'

// Temporary files are in folders `fencepost-<what>-<tag>-<id>`, which who made them removes. Those of a process that
// could not are removed by the next one that makes its first folder in the same place.

const pattern = /^fencepost-[a-z]+-(\d+-(?:\d+|unknown))-/
const cleaned = new Set<string>()

/** Makes a folder for files of this process. */
export async function temporaryFolder(what: string, parent: string = tmpdir()): Promise<string> {
  await mkdir(parent, { recursive: true })
  if (!cleaned.has(parent)) {
    cleaned.add(parent)
    await removeLeftovers(parent)
  }
  const folder = join(parent, `fencepost-${what}-${ownTag()}-${randomUUID().slice(0, 8)}`)
  await mkdir(folder, { mode: 0o700 })
  return folder
}

async function removeLeftovers(parent: string): Promise<void> {
  for (const name of await readdir(parent)) {
    const tag = pattern.exec(name)?.[1]
    // Another process may be removing the same, and what another user left is not ours to remove.
    if (tag !== undefined && !isRunning(tag))
      await rm(join(parent, name), { recursive: true, force: true }).catch(() => {})
  }
}
