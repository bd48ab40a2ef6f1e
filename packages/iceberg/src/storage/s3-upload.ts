import {
  AbortMultipartUploadCommand,
  CompleteMultipartUploadCommand,
  CreateMultipartUploadCommand,
  HeadObjectCommand,
  PutObjectCommand,
  UploadPartCommand,
  type CompletedPart,
  type S3Client,
} from '@aws-sdk/client-s3'
import { randomUUID } from 'node:crypto'
import { IcebergError } from '../errors.ts'
import { sendOptions } from './s3-client.ts'
import { attemptsOf, nameOf, statusOf } from './s3-failure.ts'
import { eachWithin } from './within.ts'

// A request that timed out may have been carried out, and the SDK sends it again: the second one then finds the object
// of the first (412), an upload that is already complete (404), or credentials that have ended meanwhile (403). So every
// object carries the id of its write, and what is there is looked at before the write is said not to have been done.
//
// Limit: a CreateMultipartUpload whose answer was lost leaves an upload without parts, and a process that is killed
// leaves one with them. No reader sees either; a lifecycle rule of the bucket (AbortIncompleteMultipartUpload) ends them.

const writeIdKey = 'fencepost-write'
const maxParts = 10_000
const maxConflicts = 5

export interface Upload {
  client: S3Client
  bucket: string
  key: string
  location: string
  exclusive: boolean
  partBytes: number
  parallelParts: number
  signal: AbortSignal | undefined
}

/** Puts small content in one request and large content in parts. The object appears whole or not at all. */
export async function upload(to: Upload, content: Uint8Array | AsyncIterable<Uint8Array>): Promise<void> {
  const parts =
    content instanceof Uint8Array ? cut(content, to.partBytes) : gather(eachWithin(to.signal, content), to.partBytes)
  try {
    const first = await parts.next()
    const second = first.done === true ? first : await parts.next()
    const writeId = randomUUID()
    if (second.done === true) await put(to, first.done === true ? new Uint8Array() : first.value, writeId)
    else await multipart(to, [first.value as Uint8Array, second.value], parts, writeId)
  } finally {
    await parts.return() // what it reads from is closed, also when not all of it was wanted
  }
}

async function* cut(content: Uint8Array, partBytes: number): AsyncGenerator<Uint8Array, void> {
  for (let at = 0; at < content.length; at += partBytes) yield content.subarray(at, at + partBytes)
}

/** Chunks of any size as parts of exactly `partBytes`, but for the last: some servers want equal parts. */
async function* gather(chunks: AsyncIterable<Uint8Array>, partBytes: number): AsyncGenerator<Uint8Array, void> {
  let part = new Uint8Array(partBytes)
  let filled = 0
  for await (const chunk of chunks) {
    for (let at = 0; at < chunk.length;) {
      const taken = chunk.subarray(at, at + partBytes - filled)
      part.set(taken, filled)
      at += taken.length
      filled += taken.length
      if (filled === partBytes) {
        yield part
        part = new Uint8Array(partBytes)
        filled = 0
      }
    }
  }
  if (filled > 0) yield part.subarray(0, filled)
}

async function put(to: Upload, body: Uint8Array, writeId: string): Promise<void> {
  await settled(to, writeId, () =>
    to.client.send(
      new PutObjectCommand({
        Bucket: to.bucket,
        Key: to.key,
        Body: body,
        ContentLength: body.length,
        Metadata: { [writeIdKey]: writeId },
        ...(to.exclusive && { IfNoneMatch: '*' }),
      }),
      sendOptions(to.signal),
    ),
  )
}

async function multipart(
  to: Upload,
  begun: Uint8Array[],
  rest: AsyncGenerator<Uint8Array, void>,
  writeId: string,
): Promise<void> {
  const target = { Bucket: to.bucket, Key: to.key }
  const created = await to.client.send(
    new CreateMultipartUploadCommand({ ...target, Metadata: { [writeIdKey]: writeId } }),
    sendOptions(to.signal),
  )
  const UploadId = created.UploadId
  if (UploadId === undefined) throw new IcebergError('storage_failed', `S3 gave no upload id for ${to.location}.`)
  try {
    const parts = await uploadParts(to, UploadId, begun, rest)
    await settled(to, writeId, () =>
      to.client.send(
        new CompleteMultipartUploadCommand({
          ...target,
          UploadId,
          MultipartUpload: { Parts: parts },
          ...(to.exclusive && { IfNoneMatch: '*' }),
        }),
        sendOptions(to.signal),
      ),
    )
  } catch (error) {
    // Harmless when it was completed after all: there is no upload any more.
    await to.client.send(new AbortMultipartUploadCommand({ ...target, UploadId })).catch(() => {})
    throw error
  }
}

/** Sends parts side by side, holding at most `parallelParts` of them in memory. */
async function uploadParts(
  to: Upload,
  UploadId: string,
  begun: Uint8Array[],
  rest: AsyncGenerator<Uint8Array, void>,
): Promise<CompletedPart[]> {
  const done: CompletedPart[] = []
  const underWay = new Set<Promise<void>>()
  const failures: unknown[] = []
  const send = async (body: Uint8Array): Promise<void> => {
    to.signal?.throwIfAborted()
    if (done.length === maxParts) {
      throw new IcebergError(
        'storage_unsupported',
        `${to.location} has more than ${maxParts} parts of ${to.partBytes} bytes: give a larger partBytes.`,
      )
    }
    const part: CompletedPart = { PartNumber: done.length + 1 }
    done.push(part)
    const command = new UploadPartCommand({
      Bucket: to.bucket,
      Key: to.key,
      UploadId,
      PartNumber: part.PartNumber,
      Body: body,
      ContentLength: body.length,
    })
    const sending: Promise<void> = to.client
      .send(command, sendOptions(to.signal))
      .then((answer) => void (part.ETag = answer.ETag))
      .catch((error: unknown) => void failures.push(error))
      .finally(() => underWay.delete(sending))
    underWay.add(sending)
    if (underWay.size >= to.parallelParts) await Promise.race(underWay)
    if (failures.length > 0) throw failures[0]
  }
  try {
    for (const body of begun) await send(body)
    for await (const body of rest) await send(body)
  } finally {
    await Promise.all(underWay)
  }
  if (failures.length > 0) throw failures[0]
  return done
}

async function settled(to: Upload, writeId: string, send: () => Promise<unknown>): Promise<void> {
  for (let conflicts = 0; ; conflicts++) {
    try {
      await send()
      return
    } catch (error) {
      to.signal?.throwIfAborted()
      const status = statusOf(error)
      const maybeDone = status === 412 || nameOf(error) === 'NoSuchUpload' || attemptsOf(error) > 1
      if (maybeDone && (await isOurs(to, writeId))) return
      // Two exclusive writers at the same moment: S3 asks to send it again, and then says who won.
      const again = status === 409 && to.exclusive && conflicts < maxConflicts
      if (!again) throw error
    }
  }
}

async function isOurs({ client, bucket, key, location, signal }: Upload, writeId: string): Promise<boolean> {
  try {
    const head = await client.send(new HeadObjectCommand({ Bucket: bucket, Key: key }), sendOptions(signal))
    return head.Metadata?.[writeIdKey] === writeId
  } catch (cause) {
    if (statusOf(cause) === 404) return false
    const message = `Whether ${location} was written could not be found out: ${(cause as Error).message}.`
    throw new IcebergError('storage_failed', message, { details: { location }, cause })
  }
}
