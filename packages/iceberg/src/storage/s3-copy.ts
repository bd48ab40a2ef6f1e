import {
  AbortMultipartUploadCommand,
  CompleteMultipartUploadCommand,
  CopyObjectCommand,
  CreateMultipartUploadCommand,
  UploadPartCopyCommand,
  type CompletedPart,
  type S3Client,
} from '@aws-sdk/client-s3'
import { IcebergError } from '../errors.ts'
import { forEachLimited, partsOf } from './each.ts'
import { sendOptions } from './s3-client.ts'
import { objectOf } from './s3-object.ts'

/** What S3 copies in one request, and the parts of what is larger. */
const s3Limits = { maxBytes: 5 * 1024 ** 3, partBytes: 512 * 1024 ** 2 }
const parallelParts = 4

/** Copies an object inside S3. It appears whole or not at all. */
export async function copyObject(
  client: S3Client,
  from: string,
  to: string,
  { bytes, etag, signal }: { bytes: number; etag: string | undefined; signal: AbortSignal | undefined },
  { maxBytes, partBytes } = s3Limits,
): Promise<void> {
  const source = {
    CopySource: copySource(from),
    // What replaced it meanwhile is not the file that was measured.
    ...(etag !== undefined && { CopySourceIfMatch: etag }),
  }
  if (bytes <= maxBytes) {
    await client.send(new CopyObjectCommand({ ...objectOf(to), ...source }), sendOptions(signal))
    return
  }
  const target = objectOf(to)
  const { UploadId } = await client.send(new CreateMultipartUploadCommand(target), sendOptions(signal))
  if (UploadId === undefined) throw new IcebergError('storage_failed', `S3 gave no upload id for ${to}.`)
  try {
    const done: CompletedPart[] = []
    await forEachLimited(partsOf(0, bytes, partBytes), parallelParts, async ({ offset, length }, index) => {
      signal?.throwIfAborted()
      const CopySourceRange = `bytes=${offset}-${offset + length - 1}`
      const part = { ...target, ...source, UploadId, PartNumber: index + 1, CopySourceRange }
      const { CopyPartResult } = await client.send(new UploadPartCopyCommand(part), sendOptions(signal))
      done[index] = { PartNumber: index + 1, ETag: CopyPartResult?.ETag }
    })
    const complete = { ...target, UploadId, MultipartUpload: { Parts: done } }
    await client.send(new CompleteMultipartUploadCommand(complete), sendOptions(signal))
  } catch (error) {
    await client.send(new AbortMultipartUploadCommand({ ...target, UploadId })).catch(() => {})
    throw error
  }
}

/** Bucket and key as the header wants them: percent-encoded, but for the slashes. */
function copySource(location: string): string {
  const { Bucket, Key } = objectOf(location)
  return `${Bucket}/${Key}`.split('/').map(encodeURIComponent).join('/')
}
