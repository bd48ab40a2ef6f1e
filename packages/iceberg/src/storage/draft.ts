import { createReadStream } from 'node:fs'
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { forEachLimited } from './each.ts'
import { fileName } from './location.ts'
import type { CallOptions, Draft, Storage } from './storage.ts'
import { temporaryFolder } from './temporary-folder.ts'

// What a storage that is not on this machine does with drafts: they are temporary files, which are sent when they are
// adopted.

const parallelFiles = 4

/** A draft in a temporary folder of its own. */
export async function temporaryDraft(location: string): Promise<Draft> {
  const folder = await temporaryFolder('write')
  const discard = (): Promise<void> => rm(folder, { recursive: true, force: true }).catch(() => {})
  return { location, path: join(folder, fileName(location)), discard }
}

/** Adopts drafts by sending each as the content of a write. */
export async function sendDrafts(
  storage: Pick<Storage, 'write'>,
  drafts: readonly Draft[],
  { signal }: CallOptions = {},
): Promise<void> {
  await forEachLimited(drafts, parallelFiles, async (draft) => {
    signal?.throwIfAborted()
    const content = createReadStream(draft.path, { highWaterMark: 1024 * 1024 })
    try {
      await storage.write(draft.location, content, { signal })
    } finally {
      content.destroy() // it may not have been read to its end
    }
    await draft.discard()
  })
}
