import { stat } from 'node:fs/promises'
import type { CallOptions, Draft, Storage } from './storage.ts'

const maxDrafts = 64
const maxDraftBytes = 256 * 1024 * 1024

/**
 * The owner of files that are being written for a commit. They become files of the storage in batches, so that folders
 * are synced once for many files, and what waits on this machine stays bounded. Ends with `keep` or with `remove`.
 */
export class NewFiles {
  readonly #storage: Storage
  readonly #options: CallOptions
  /** Handed over to the storage, with or without success. */
  readonly #handedOver: string[] = []
  #drafts: Draft[] = []
  #draftBytes = 0

  constructor(storage: Storage, options: CallOptions = {}) {
    this.#storage = storage
    this.#options = options
  }

  /** Has a file written to a path of this machine. It is at its location when `keep` has returned, or sooner. */
  async write<T>(location: string, write: (path: string) => Promise<T>): Promise<T> {
    this.#options.signal?.throwIfAborted()
    const draft = await this.#storage.draft(location, this.#options)
    try {
      const written = await write(draft.path)
      this.#draftBytes += (await stat(draft.path)).size
      this.#drafts.push(draft)
      if (this.#drafts.length >= maxDrafts || this.#draftBytes >= maxDraftBytes) await this.keep()
      return written
    } catch (error) {
      await draft.discard()
      throw error
    }
  }

  /** Every file so far is whole and durable at its location when this returns: they are the caller's from then on. */
  async keep(): Promise<void> {
    const drafts = this.#drafts
    if (drafts.length === 0) return
    this.#drafts = []
    this.#draftBytes = 0
    this.#handedOver.push(...drafts.map(({ location }) => location))
    try {
      await this.#storage.adopt(drafts, this.#options)
    } finally {
      for (const draft of drafts) await draft.discard()
    }
  }

  /** Removes every file so far. Never fails: what stays is litter, and the error at hand is what counts. */
  async remove(): Promise<void> {
    for (const draft of this.#drafts.splice(0)) await draft.discard()
    await this.#storage.delete(this.#handedOver.splice(0)).catch(() => {})
  }
}
