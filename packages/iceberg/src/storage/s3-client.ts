import { S3Client, type S3ClientConfig } from '@aws-sdk/client-s3'
import { IcebergError } from '../errors.ts'
import { haveEnded, statusOf } from './s3-failure.ts'

export interface S3Credentials {
  readonly accessKeyId: string
  readonly secretAccessKey: string
  readonly sessionToken?: string
  /** When they stop working. Without it they are thought to last. */
  readonly expiresAt?: Date
}

export interface S3Options {
  /** Default: us-east-1 with an endpoint, which servers that know no regions accept; without, the SDK's own. */
  region?: string
  /** Of a compatible server, such as http://localhost:7070. Default: Amazon's. */
  endpoint?: string
  /** `endpoint/bucket/key` instead of `bucket.endpoint/key`. Default: true with an endpoint, false without. */
  pathStyle?: boolean
  /** Default: the SDK's own chain (environment, profile, instance). A function is asked again before they expire. */
  credentials?: S3Credentials | (() => Promise<S3Credentials>)
  /** Tries for each request, the first included, with growing pauses. Default 5. */
  maxAttempts?: number
  /** Silence on a connection after which a request is given up, and tried again. Default 60,000. */
  requestTimeoutMs?: number
  /** Bytes of each part of a large read or write, at least 5 MiB for writes. Default 16 MiB. */
  partBytes?: number
  /** Parts of one file that are under way at the same time. Default 4. */
  parallelParts?: number
}

export function openS3Client(options: S3Options): S3Client {
  const timeout = options.requestTimeoutMs ?? 60_000
  const config: S3ClientConfig = {
    maxAttempts: options.maxAttempts ?? 5,
    requestHandler: {
      connectionTimeout: Math.min(timeout, 10_000),
      requestTimeout: timeout,
      throwOnRequestTimeout: true,
    },
    // Many compatible servers refuse the newer checksums; where S3 demands one it is still sent.
    requestChecksumCalculation: 'WHEN_REQUIRED',
    responseChecksumValidation: 'WHEN_REQUIRED',
    forcePathStyle: options.pathStyle ?? options.endpoint !== undefined,
  }
  if (options.endpoint !== undefined) config.endpoint = options.endpoint
  if (options.region !== undefined) config.region = options.region
  else if (options.endpoint !== undefined) config.region = 'us-east-1'
  const { credentials } = options
  if (credentials !== undefined) {
    config.credentials =
      typeof credentials === 'function' ? async () => identity(await credentials()) : identity(credentials)
  }
  const client = new S3Client(config)
  if (typeof credentials === 'function') renewRefused(client)
  return client
}

/** What a request is sent with to be ended by a signal. */
export function sendOptions(signal: AbortSignal | undefined): { abortSignal?: AbortSignal } {
  return signal === undefined ? {} : { abortSignal: signal }
}

/**
 * Credentials that the server takes no longer are asked for once more: not every catalog says when those that it hands
 * out end, and clocks differ. The answer to a HEAD has no body to say why it was refused.
 */
function renewRefused(client: S3Client): void {
  client.middlewareStack.add(
    (next, { commandName }) =>
      async (args) => {
        try {
          return await next(args)
        } catch (error) {
          const mute = commandName === 'HeadObjectCommand' && [400, 401, 403].includes(statusOf(error) ?? 0)
          if (!mute && !haveEnded(error)) throw error
          await client.config.credentials({ forceRefresh: true })
          return await next(args)
        }
      },
    { step: 'initialize', priority: 'low', name: 'renewRefusedCredentials' },
  )
}

function identity({ accessKeyId, secretAccessKey, sessionToken, expiresAt }: S3Credentials) {
  return {
    accessKeyId,
    secretAccessKey,
    ...(sessionToken !== undefined && { sessionToken }),
    ...(expiresAt !== undefined && { expiration: expiresAt }),
  }
}

/**
 * What Iceberg's own properties say about S3, as catalogs hand them out: s3.endpoint, s3.path-style-access, s3.region or
 * client.region, s3.access-key-id, s3.secret-access-key, s3.session-token, s3.session-token-expires-at-ms.
 */
export function s3OptionsFrom(properties: Readonly<Record<string, string>>): S3Options {
  const options: S3Options = {}
  const region = properties['s3.region'] ?? properties['client.region']
  if (region !== undefined) options.region = region
  if (properties['s3.endpoint'] !== undefined) options.endpoint = properties['s3.endpoint']
  const pathStyle = properties['s3.path-style-access']
  if (pathStyle !== undefined) options.pathStyle = pathStyle.toLowerCase() === 'true'
  const credentials = s3CredentialsFrom(properties)
  if (credentials !== undefined) options.credentials = credentials
  return options
}

export function s3CredentialsFrom(properties: Readonly<Record<string, string>>): S3Credentials | undefined {
  const accessKeyId = properties['s3.access-key-id']
  const secretAccessKey = properties['s3.secret-access-key']
  if (accessKeyId === undefined && secretAccessKey === undefined) return undefined
  if (accessKeyId === undefined || secretAccessKey === undefined) {
    throw new IcebergError(
      'catalog_invalid',
      'Only one of s3.access-key-id and s3.secret-access-key is given: give both, or neither.',
    )
  }
  const sessionToken = properties['s3.session-token']
  const expiresAtMs = properties['s3.session-token-expires-at-ms']
  return {
    accessKeyId,
    secretAccessKey,
    ...(sessionToken !== undefined && { sessionToken }),
    ...(expiresAtMs !== undefined && { expiresAt: new Date(Number(expiresAtMs)) }),
  }
}
