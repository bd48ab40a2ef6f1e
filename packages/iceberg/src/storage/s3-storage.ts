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
import { IcebergError } from '../errors.ts'
import { forEachLimited, partsOf } from './each.ts'
import { parseLocation } from './location.ts'
import { openS3Client, type S3Options } from './s3-client.ts'
import { explainS3, statusOf } from './s3-failure.ts'
import { upload } from './s3-upload.ts'
import { isThere, type ByteRange, type FailedDelete, type FolderStorage, type ListedFile } from './storage.ts'

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

  async read(location: string, range?: ByteRange): Promise<Uint8Array> {
    if (range === undefined) return this.#readWhole(location)
    if (range.length === 0) {
      if (range.offset < 0 || range.offset > (await this.size(location))) throw outOfRange(location, range)
      return new Uint8Array()
    }
    const bytes = new Uint8Array(range.length)
    await this.#readInto(location, bytes, range, undefined)
    return bytes
  }

  /** The first request tells the size; what it did not bring is read side by side, of the same version. */
  async #readWhole(location: string): Promise<Uint8Array> {
    const { body, total, etag } = await this.#get(location, { offset: 0, length: this.#partBytes }, undefined)
    if (total === body.length) return body
    const bytes = new Uint8Array(total)
    bytes.set(body)
    const rest = { offset: body.length, length: total - body.length }
    await this.#readInto(location, bytes.subarray(body.length), rest, etag)
    return bytes
  }

  async #readInto(location: string, target: Uint8Array, range: ByteRange, etag: string | undefined): Promise<void> {
    const parts = partsOf(range.offset, range.length, this.#partBytes)
    await forEachLimited(parts, this.#parallelParts, async (part) => {
      const { body } = await this.#get(location, part, etag)
      if (body.length !== part.length) throw outOfRange(location, range)
      target.set(body, part.offset - range.offset)
    })
  }

  /** One ranged request, repeated when its body breaks off, which the SDK does not do. */
  async #get(
    location: string,
    { offset, length }: ByteRange,
    etag: string | undefined,
  ): Promise<{ body: Uint8Array; total: number; etag: string | undefined }> {
    const { Bucket, Key } = objectOf(location)
    if (offset < 0 || length < 0) throw outOfRange(location, { offset, length })
    const Range = `bytes=${offset}-${offset + length - 1}`
    const command = { Bucket, Key, Range, ...(etag !== undefined && { IfMatch: etag }) }
    for (let tried = 1; ; tried++) {
      const answer = await this.#send(location, () => this.#client.send(new GetObjectCommand(command))).catch(
        (error: unknown) => {
          const status = error instanceof IcebergError ? error.details['status'] : undefined
          if (status === 416) return undefined
          throw status === 412 ? changed(location, error) : error
        },
      )
      if (answer === undefined) return { body: new Uint8Array(), total: await this.size(location), etag: undefined }
      try {
        const body = (await answer.Body?.transformToByteArray()) ?? new Uint8Array()
        if (answer.ContentLength !== undefined && body.length !== answer.ContentLength) {
          throw new IcebergError('storage_failed', `The body of ${location} ended early.`, { details: { location } })
        }
        return { body, total: totalOf(answer, body), etag: answer.ETag }
      } catch (error) {
        if (tried === bodyAttempts) throw explainS3(location, error)
      }
    }
  }

  async size(location: string): Promise<number> {
    const object = objectOf(location)
    const { ContentLength } = await this.#send(location, () => this.#client.send(new HeadObjectCommand(object)))
    if (ContentLength !== undefined) return ContentLength
    throw new IcebergError('storage_failed', `S3 did not say how large ${location} is.`, { details: { location } })
  }

  exists(location: string): Promise<boolean> {
    return isThere(this.size(location))
  }

  async write(
    location: string,
    content: Uint8Array | AsyncIterable<Uint8Array>,
    { exclusive = false }: { exclusive?: boolean } = {},
  ): Promise<void> {
    const { Bucket, Key } = objectOf(location)
    if (exclusive) await this.#checkConditional(Bucket, location)
    await this.#send(location, () => this.#put(location, Bucket, Key, content, exclusive))
  }

  #put(
    location: string,
    bucket: string,
    key: string,
    content: Uint8Array | AsyncIterable<Uint8Array>,
    exclusive: boolean,
  ): Promise<void> {
    const client = this.#client
    const [partBytes, parallelParts] = [this.#partBytes, this.#parallelParts]
    return upload({ client, bucket, key, location, exclusive, partBytes, parallelParts }, content)
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

  async #tryConditional(bucket: string, location: string): Promise<void> {
    const { Key } = objectOf(location)
    const key = `${Key.slice(0, Key.lastIndexOf('/') + 1)}.fencepost-exclusive-${randomUUID()}`
    await this.#send(location, async () => {
      await this.#put(location, bucket, key, new Uint8Array(), true)
      const second = await this.#put(location, bucket, key, new Uint8Array(), true).catch((error: unknown) => error)
      await this.#client.send(new DeleteObjectCommand({ Bucket: bucket, Key: key }))
      if (second === undefined) throw unconditional(location)
      if (statusOf(second) !== 412) throw second as Error
    })
  }

  async *list(folder: string): AsyncGenerator<ListedFile> {
    const { bucket, key } = parseS3(folder)
    const prefix = key === '' ? '' : asFolder(key)
    let token: string | undefined
    do {
      const page = await this.#send(folder, () =>
        this.#client.send(
          new ListObjectsV2Command({ Bucket: bucket, Prefix: prefix, ...(token && { ContinuationToken: token }) }),
        ),
      )
      for (const { Key, Size, LastModified } of page.Contents ?? []) {
        if (Key === undefined || LastModified === undefined || Size === undefined) throw badPage(folder)
        // What other tools put there to have a folder to show.
        if (Key.endsWith('/')) continue
        yield { location: asFolder(folder) + Key.slice(prefix.length), size: Size, modifiedAt: LastModified }
      }
      token = page.NextContinuationToken
      if (page.IsTruncated === true && token === undefined) throw badPage(folder)
      if (page.IsTruncated !== true) token = undefined
    } while (token !== undefined)
  }

  async folders(folder: string): Promise<string[]> {
    const { bucket, key } = parseS3(folder)
    const prefix = key === '' ? '' : asFolder(key)
    const names: string[] = []
    let token: string | undefined
    do {
      const command = { Bucket: bucket, Prefix: prefix, Delimiter: '/', ...(token && { ContinuationToken: token }) }
      const page = await this.#send(folder, () => this.#client.send(new ListObjectsV2Command(command)))
      for (const { Prefix } of page.CommonPrefixes ?? []) if (Prefix) names.push(Prefix.slice(prefix.length, -1))
      token = page.IsTruncated === true ? page.NextContinuationToken : undefined
      if (page.IsTruncated === true && token === undefined) throw badPage(folder)
    } while (token !== undefined)
    return names
  }

  /** An object whose name ends in a slash, as other tools make them. */
  async makeFolder(folder: string): Promise<void> {
    const { bucket, key } = parseS3(folder)
    await this.#send(folder, () => this.#put(folder, bucket, asFolder(key), new Uint8Array(), false))
  }

  async removeFolder(folder: string): Promise<void> {
    for await (const { location } of this.list(folder)) {
      throw new IcebergError('storage_failed', `${folder} cannot be removed: ${location} is in it.`)
    }
    for (const name of await this.folders(folder)) await this.removeFolder(`${asFolder(folder)}${name}/`)
    const { bucket, key } = parseS3(folder)
    await this.#send(folder, () => this.#client.send(new DeleteObjectCommand({ Bucket: bucket, Key: asFolder(key) })))
  }

  async folderExists(folder: string): Promise<boolean> {
    const { bucket, key } = parseS3(folder)
    const command = new ListObjectsV2Command({ Bucket: bucket, Prefix: key === '' ? '' : asFolder(key), MaxKeys: 1 })
    const page = await this.#send(folder, () => this.#client.send(command))
    return (page.Contents ?? []).length > 0
  }

  async delete(locations: readonly string[]): Promise<FailedDelete[]> {
    const failed: FailedDelete[] = []
    const batches = new Map<string, string[][]>()
    for (const location of locations) {
      let bucket: string
      try {
        bucket = objectOf(location).Bucket
      } catch (error) {
        failed.push({ location, error: error as Error })
        continue
      }
      const ofBucket = batches.get(bucket) ?? [[]]
      batches.set(bucket, ofBucket)
      if (ofBucket.at(-1)?.length === deleteBatch) ofBucket.push([])
      ofBucket.at(-1)?.push(location)
    }
    for (const [bucket, ofBucket] of batches) {
      await forEachLimited(ofBucket, this.#parallelParts, async (batch) => {
        failed.push(...(await this.#deleteBatch(bucket, batch)))
      })
    }
    return failed
  }

  async #deleteBatch(bucket: string, batch: readonly string[]): Promise<FailedDelete[]> {
    const byKey = new Map(batch.map((location) => [objectOf(location).Key, location]))
    try {
      const Objects = [...byKey.keys()].map((Key) => ({ Key }))
      const answer = await this.#client.send(new DeleteObjectsCommand({ Bucket: bucket, Delete: { Objects } }))
      const failed: FailedDelete[] = []
      for (const { Key = '', Code, Message } of answer.Errors ?? []) {
        const location = byKey.get(Key)
        if (location === undefined) continue
        byKey.delete(Key)
        if (Code === 'NoSuchKey') continue
        failed.push({ location, error: notDeleted(location, `${Code ?? ''}: ${Message ?? ''}`) })
      }
      for (const { Key = '' } of answer.Deleted ?? []) byKey.delete(Key)
      for (const location of byKey.values()) {
        failed.push({ location, error: notDeleted(location, 'the answer does not mention it') })
      }
      return failed
    } catch (error) {
      return batch.map((location) => ({ location, error: explainS3(location, error) }))
    }
  }

  async #send<T>(location: string, send: () => Promise<T>): Promise<T> {
    try {
      return await send()
    } catch (error) {
      throw explainS3(location, error)
    }
  }

  close(): void {
    this.#client.destroy()
  }
}

function parseS3(location: string): { bucket: string; key: string } {
  const parsed = parseLocation(location)
  if (parsed.scheme === 's3') return parsed
  throw new IcebergError('location_invalid', `"${location}" is not an S3 object.`, { details: { location } })
}

function objectOf(location: string): { Bucket: string; Key: string } {
  const { bucket, key } = parseS3(location)
  if (key !== '') return { Bucket: bucket, Key: key }
  throw new IcebergError('location_invalid', `"${location}" names a bucket and no object.`, { details: { location } })
}

/** With exactly the slashes it has, and at least one: `a/` and `a//` are two folders here. */
function asFolder(prefix: string): string {
  return prefix.endsWith('/') ? prefix : `${prefix}/`
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

function badPage(folder: string): IcebergError {
  return new IcebergError('storage_failed', `S3 answered a damaged page of the listing of ${folder}.`, {
    details: { location: folder },
  })
}

function unconditional(location: string): IcebergError {
  return new IcebergError(
    'storage_unsupported',
    `The server of ${location} ignores conditional writes (If-None-Match), so a file cannot be created safely there. ` +
      'Use a JDBC or REST catalog for tables on it.',
    { details: { location } },
  )
}
