import {
  DeleteObjectCommand,
  DeleteObjectsCommand,
  GetObjectCommand,
  HeadObjectCommand,
  ListObjectsV2Command,
  type GetObjectCommandOutput,
  type S3Client,
} from '@aws-sdk/client-s3'
import { randomUUID } from 'node:crypto'
import { Readable } from 'node:stream'
import { IcebergError } from '../errors.ts'
import { sendDrafts, temporaryDraft } from './draft.ts'
import { forEachLimited, partsOf } from './each.ts'
import { eachOfPages } from './pages.ts'
import { openS3Client, sendOptions, type S3Options } from './s3-client.ts'
import { copyObject } from './s3-copy.ts'
import { explainS3, statusOf } from './s3-failure.ts'
import { listFolders, listPages, serverTime, type SendPage } from './s3-listing.ts'
import { asFolder, objectOf, parseS3, prefixOf } from './s3-object.ts'
import { upload, type Upload } from './s3-upload.ts'
import {
  isThere,
  type ByteRange,
  type CallOptions,
  type Deleted,
  type Draft,
  type FailedDelete,
  type FolderStorage,
  type ListedFile,
  type WriteOptions,
} from './storage.ts'
import { within } from './within.ts'

const deleteBatch = 1000
const bodyAttempts = 4

/** Objects of S3 and of servers that speak its protocol. */
export class S3Storage implements FolderStorage {
  readonly #client: S3Client
  readonly #partBytes: number
  readonly #parallelParts: number
  /** By bucket: whether its server honours conditional puts. */
  readonly #conditional = new Map<string, Promise<void>>()

  constructor(options: S3Options = {}) {
    this.#client = openS3Client(options)
    this.#partBytes = options.partBytes ?? 16 * 1024 * 1024
    this.#parallelParts = options.parallelParts ?? 4
  }

  async read(location: string, range?: ByteRange, { signal }: CallOptions = {}): Promise<Uint8Array> {
    if (range === undefined) return this.#readWhole(location, signal)
    if (range.length === 0) {
      if (range.offset < 0 || range.offset > (await this.size(location, { signal }))) throw outOfRange(location, range)
      return new Uint8Array()
    }
    const bytes = new Uint8Array(range.length)
    await this.#readInto(location, bytes, range, undefined, signal)
    return bytes
  }

  /** The first request tells the size; what it did not bring is read side by side, of the same version. */
  async #readWhole(location: string, signal: AbortSignal | undefined): Promise<Uint8Array> {
    const { body, total, etag } = await this.#get(location, { offset: 0, length: this.#partBytes }, undefined, signal)
    if (total === body.length) return body
    const bytes = new Uint8Array(total)
    bytes.set(body)
    const rest = { offset: body.length, length: total - body.length }
    await this.#readInto(location, bytes.subarray(body.length), rest, etag, signal)
    return bytes
  }

  async #readInto(
    location: string,
    target: Uint8Array,
    range: ByteRange,
    etag: string | undefined,
    signal: AbortSignal | undefined,
  ): Promise<void> {
    const parts = partsOf(range.offset, range.length, this.#partBytes)
    await forEachLimited(parts, this.#parallelParts, async (part) => {
      const { body } = await this.#get(location, part, etag, signal)
      if (body.length !== part.length) throw outOfRange(location, range)
      target.set(body, part.offset - range.offset)
    })
  }

  /** One ranged request, repeated when its body breaks off, which the SDK does not do. */
  async #get(
    location: string,
    { offset, length }: ByteRange,
    etag: string | undefined,
    signal: AbortSignal | undefined,
  ): Promise<{ body: Uint8Array; total: number; etag: string | undefined }> {
    const { Bucket, Key } = objectOf(location)
    if (offset < 0 || length < 0) throw outOfRange(location, { offset, length })
    const Range = `bytes=${offset}-${offset + length - 1}`
    const command = { Bucket, Key, Range, ...(etag !== undefined && { IfMatch: etag }) }
    for (let tried = 1; ; tried++) {
      const answer = await this.#send(location, signal, (sent) =>
        this.#client.send(new GetObjectCommand(command), sent),
      ).catch((error: unknown) => {
        const status = error instanceof IcebergError ? error.details['status'] : undefined
        if (status === 416) return undefined
        throw status === 412 ? changed(location, error) : error
      })
      if (answer === undefined) {
        return { body: new Uint8Array(), total: await this.size(location, { signal }), etag: undefined }
      }
      try {
        const body = await bodyOf(answer, signal)
        if (answer.ContentLength !== undefined && body.length !== answer.ContentLength) {
          throw new IcebergError('storage_failed', `The body of ${location} ended early.`, { details: { location } })
        }
        return { body, total: totalOf(answer, body), etag: answer.ETag }
      } catch (error) {
        signal?.throwIfAborted()
        if (tried === bodyAttempts) throw explainS3(location, error)
      }
    }
  }

  async size(location: string, { signal }: CallOptions = {}): Promise<number> {
    return (await this.#head(location, signal)).bytes
  }

  async #head(location: string, signal: AbortSignal | undefined): Promise<{ bytes: number; etag: string | undefined }> {
    const command = new HeadObjectCommand(objectOf(location))
    const { ContentLength, ETag } = await this.#send(location, signal, (sent) => this.#client.send(command, sent))
    if (ContentLength !== undefined) return { bytes: ContentLength, etag: ETag }
    throw new IcebergError('storage_failed', `S3 did not say how large ${location} is.`, { details: { location } })
  }

  exists(location: string, options?: CallOptions): Promise<boolean> {
    return isThere(this.size(location, options))
  }

  async write(
    location: string,
    content: Uint8Array | AsyncIterable<Uint8Array>,
    { exclusive = false, signal }: WriteOptions = {},
  ): Promise<void> {
    const { Bucket, Key } = objectOf(location)
    if (exclusive) await within(signal, () => this.#checkConditional(Bucket, location))
    await this.#send(location, signal, () =>
      this.#put({ location, bucket: Bucket, key: Key, exclusive, signal }, content),
    )
  }

  #put(
    to: Pick<Upload, 'location' | 'bucket' | 'key' | 'exclusive' | 'signal'>,
    content: Uint8Array | AsyncIterable<Uint8Array>,
  ): Promise<void> {
    const client = this.#client
    const [partBytes, parallelParts] = [this.#partBytes, this.#parallelParts]
    return upload({ ...to, client, partBytes, parallelParts }, content)
  }

  /**
   * A server that does not know `If-None-Match` overwrites and says nothing. So before the first exclusive write to a
   * bucket an object is written twice beside it: the second write must be refused.
   */
  #checkConditional(bucket: string, location: string): Promise<void> {
    const checked = this.#conditional.get(bucket) ?? this.#tryConditional(bucket, location)
    this.#conditional.set(bucket, checked)
    // What could not be found out is tried again by the next write.
    checked.catch(() => this.#conditional.delete(bucket))
    return checked
  }

  // Without a signal: what it finds out is for every writer that waits for it.
  async #tryConditional(bucket: string, location: string): Promise<void> {
    const { Key } = objectOf(location)
    const key = `${Key.slice(0, Key.lastIndexOf('/') + 1)}.fencepost-exclusive-${randomUUID()}`
    const to = { location, bucket, key, exclusive: true, signal: undefined }
    await this.#send(location, undefined, async () => {
      await this.#put(to, new Uint8Array())
      const second = await this.#put(to, new Uint8Array()).catch((error: unknown) => error)
      await this.#client.send(new DeleteObjectCommand({ Bucket: bucket, Key: key }))
      if (second === undefined) throw unconditional(location)
      if (statusOf(second) !== 412) throw second as Error
    })
  }

  draft(location: string, { signal }: CallOptions = {}): Promise<Draft> {
    return within(signal, async () => {
      objectOf(location)
      return temporaryDraft(location)
    })
  }

  adopt(drafts: readonly Draft[], options?: CallOptions): Promise<void> {
    return sendDrafts(this, drafts, options)
  }

  async copy(from: string, to: string, { signal }: CallOptions = {}): Promise<void> {
    objectOf(to)
    const { bytes, etag } = await this.#head(from, signal)
    await this.#send(from, signal, () => copyObject(this.#client, from, to, { bytes, etag, signal }))
  }

  list(folder: string, { signal }: CallOptions = {}): AsyncIterable<ListedFile> {
    return eachOfPages(listPages(folder, this.#pages(folder, signal), signal))
  }

  /** The time on an answer. Limit: of a gateway that answers by itself it is the gateway's. */
  async now(folder: string, { signal }: CallOptions = {}): Promise<Date> {
    return this.#send(folder, signal, () => serverTime(this.#client, folder, signal))
  }

  async folders(folder: string, { signal }: CallOptions = {}): Promise<string[]> {
    return listFolders(folder, this.#pages(folder, signal))
  }

  #pages(folder: string, signal: AbortSignal | undefined): SendPage {
    return (command) => this.#send(folder, signal, (sent) => this.#client.send(command, sent))
  }

  /** An object whose name ends in a slash, as other tools make them. */
  async makeFolder(folder: string, { signal }: CallOptions = {}): Promise<void> {
    const { bucket, key } = parseS3(folder)
    const to = { location: folder, bucket, key: asFolder(key), exclusive: false, signal }
    await this.#send(folder, signal, () => this.#put(to, new Uint8Array()))
  }

  async removeFolder(folder: string, options: CallOptions = {}): Promise<void> {
    for await (const { location } of this.list(folder, options)) {
      throw new IcebergError('storage_failed', `${folder} cannot be removed: ${location} is in it.`)
    }
    for (const name of await this.folders(folder, options)) {
      await this.removeFolder(`${asFolder(folder)}${name}/`, options)
    }
    const { bucket, key } = parseS3(folder)
    const command = new DeleteObjectCommand({ Bucket: bucket, Key: asFolder(key) })
    await this.#send(folder, options.signal, (sent) => this.#client.send(command, sent))
  }

  async folderExists(folder: string, { signal }: CallOptions = {}): Promise<boolean> {
    const command = new ListObjectsV2Command({ ...prefixOf(folder), MaxKeys: 1 })
    const page = await this.#pages(folder, signal)(command)
    return (page.Contents ?? []).length > 0
  }

  async delete(locations: readonly string[], { signal }: CallOptions = {}): Promise<Deleted> {
    const deleted: { failed: FailedDelete[]; missing: string[] } = { failed: [], missing: [] }
    const batches = new Map<string, string[][]>()
    for (const location of locations) {
      let bucket: string
      try {
        bucket = objectOf(location).Bucket
      } catch (error) {
        deleted.failed.push({ location, error: error as Error })
        continue
      }
      const ofBucket = batches.get(bucket) ?? [[]]
      batches.set(bucket, ofBucket)
      if (ofBucket.at(-1)?.length === deleteBatch) ofBucket.push([])
      ofBucket.at(-1)?.push(location)
    }
    for (const [bucket, ofBucket] of batches) {
      await forEachLimited(ofBucket, this.#parallelParts, async (batch) => {
        signal?.throwIfAborted()
        const { failed, missing } = await this.#deleteBatch(bucket, batch, signal)
        deleted.failed.push(...failed)
        deleted.missing.push(...missing)
      })
    }
    return deleted
  }

  async #deleteBatch(bucket: string, batch: readonly string[], signal: AbortSignal | undefined): Promise<Deleted> {
    const byKey = new Map(batch.map((location) => [objectOf(location).Key, location]))
    try {
      const Objects = [...byKey.keys()].map((Key) => ({ Key }))
      const command = new DeleteObjectsCommand({ Bucket: bucket, Delete: { Objects } })
      const answer = await within(signal, () => this.#client.send(command, sendOptions(signal)))
      const failed: FailedDelete[] = []
      const missing: string[] = []
      for (const { Key = '', Code, Message } of answer.Errors ?? []) {
        const location = byKey.get(Key)
        if (location === undefined) continue
        byKey.delete(Key)
        if (Code === 'NoSuchKey') missing.push(location)
        else failed.push({ location, error: notDeleted(location, `${Code ?? ''}: ${Message ?? ''}`) })
      }
      for (const { Key = '' } of answer.Deleted ?? []) byKey.delete(Key)
      for (const location of byKey.values()) {
        failed.push({ location, error: notDeleted(location, 'the answer does not mention it') })
      }
      return { failed, missing }
    } catch (error) {
      signal?.throwIfAborted()
      return { failed: batch.map((location) => ({ location, error: explainS3(location, error) })), missing: [] }
    }
  }

  /** The SDK does not heed a signal while it waits to try again, or for credentials: it is not waited for. */
  async #send<T>(
    location: string,
    signal: AbortSignal | undefined,
    send: (options: { abortSignal?: AbortSignal }) => Promise<T>,
  ): Promise<T> {
    try {
      return await within(signal, () => send(sendOptions(signal)))
    } catch (error) {
      signal?.throwIfAborted()
      throw explainS3(location, error)
    }
  }

  close(): void {
    this.#client.destroy()
  }
}

/** A body that is no longer wanted is not read on: its connection is closed. */
async function bodyOf({ Body }: GetObjectCommandOutput, signal: AbortSignal | undefined): Promise<Uint8Array> {
  if (Body === undefined) return new Uint8Array()
  try {
    return await within(signal, () => Body.transformToByteArray())
  } catch (error) {
    if (Body instanceof Readable) Body.destroy()
    throw error
  }
}

function totalOf(answer: GetObjectCommandOutput, body: Uint8Array): number {
  const total = /\/(\d+)$/.exec(answer.ContentRange ?? '')?.[1]
  return total === undefined ? body.length : Number(total)
}

function outOfRange(location: string, { offset, length }: ByteRange): IcebergError {
  return new IcebergError(
    'storage_range',
    `${location} does not have ${length} bytes from ${offset}. The file is not the one that was described.`,
    { details: { location, offset, length } },
  )
}

function changed(location: string, cause: unknown): IcebergError {
  return new IcebergError('storage_failed', `${location} was replaced while it was being read. Read it again.`, {
    details: { location },
    cause,
  })
}

function notDeleted(location: string, why: string): IcebergError {
  return new IcebergError('storage_failed', `${location} was not deleted: ${why}.`, { details: { location } })
}

function unconditional(location: string): IcebergError {
  return new IcebergError(
    'storage_unsupported',
    `The server of ${location} ignores conditional writes (If-None-Match), so a file cannot be created safely there. ` +
      'Use a JDBC or REST catalog for tables on it.',
    { details: { location } },
  )
}
