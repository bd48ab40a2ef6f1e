import { IcebergError } from '../errors.ts'

interface S3Failure {
  name?: string
  message?: string
  $metadata?: { httpStatusCode?: number; attempts?: number }
}

// What S3 and others say of credentials that worked once.
const endedNames = new Set([
  'ExpiredToken',
  'ExpiredTokenException',
  'InvalidAccessKeyId',
  'InvalidToken',
  'TokenRefreshRequired',
])

export function statusOf(error: unknown): number | undefined {
  return (error as S3Failure).$metadata?.httpStatusCode
}

export function nameOf(error: unknown): string {
  return (error as S3Failure).name ?? ''
}

/** How often the SDK sent the request. */
export function attemptsOf(error: unknown): number {
  return (error as S3Failure).$metadata?.attempts ?? 1
}

/** Whether a request was refused because its credentials are no longer good. */
export function haveEnded(error: unknown): boolean {
  return endedNames.has(nameOf(error))
}

/** An error of the SDK, told in the words of this package. */
export function explainS3(location: string, error: unknown): Error {
  if (error instanceof IcebergError) return error
  const status = statusOf(error)
  const name = nameOf(error)
  const options = { details: { location, status, name }, cause: error }
  const what = `${name}${status === undefined ? '' : ` (${status})`}: ${(error as S3Failure).message ?? ''}`
  if (name === 'NoSuchBucket') {
    return new IcebergError('storage_not_found', `The bucket of ${location} does not exist.`, options)
  }
  if (status === 404 && name !== 'NoSuchUpload') {
    return new IcebergError('storage_not_found', `There is no file ${location}.`, options)
  }
  if (status === 412) {
    return new IcebergError('storage_exists', `${location} exists already, and was not overwritten.`, options)
  }
  if (status === 401 || status === 403 || haveEnded(error) || name === 'CredentialsProviderError') {
    return new IcebergError('storage_denied', `S3 does not allow this with ${location}: ${what}.`, options)
  }
  if (status === 501) return new IcebergError('storage_unsupported', `The S3 server cannot do this: ${what}.`, options)
  return new IcebergError('storage_failed', `${location} could not be used: ${what}.`, options)
}
