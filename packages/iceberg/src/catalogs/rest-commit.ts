import { IcebergError } from '../errors.ts'
import type { Json } from '../json/json.ts'
import type { MetadataUpdate } from '../metadata/update.ts'
import { requirementToJson, updateToJson } from '../metadata/update-json.ts'
import {
  conflict,
  tableName,
  tableNotFound,
  type CommitRequest,
  type CommitResult,
  type TableIdentifier,
} from './catalog.ts'
import { generalError, RestRefusal, RestSilence } from './rest-http.ts'

/** The body of a commit. */
export function commitBody(identifier: TableIdentifier, request: CommitRequest, bulkRemoval: boolean): Json {
  const updates = bulkRemoval ? request.updates : request.updates.flatMap(oneByOne)
  return {
    identifier: { namespace: [...identifier.namespace], name: identifier.name },
    requirements: request.requirements.map(requirementToJson),
    updates: updates.map(updateToJson),
  }
}

// Servers of older releases take one snapshot in each update only.
function oneByOne(update: MetadataUpdate): MetadataUpdate[] {
  if (update.action !== 'remove-snapshots') return [update]
  return update.snapshotIds.map((snapshotId) => ({ action: 'remove-snapshots', snapshotIds: [snapshotId] }))
}

/** What a commit that did not return 200 came to. Only what the server refuses, or was never sent, is certain. */
export function commitFailure(catalog: string, identifier: TableIdentifier, error: unknown): CommitResult {
  if (error instanceof RestSilence && error.neverSent) {
    return { outcome: 'not_applied', why: 'unavailable', error: generalError(error), neverSent: true }
  }
  if (error instanceof RestSilence || (error instanceof RestRefusal && error.status >= 500)) {
    return { outcome: 'unknown', error: unknownError(identifier, error) }
  }
  // No token to ask with: nothing was sent.
  if (!(error instanceof RestRefusal)) {
    const passing = error instanceof IcebergError && error.code === 'catalog_unavailable'
    return { outcome: 'not_applied', why: passing ? 'unavailable' : 'rejected', error: error as Error, neverSent: true }
  }
  switch (error.status) {
    case 409:
      return conflict(identifier, 'another commit came first', error)
    case 429: {
      const { retryAfterMs } = error
      const wait = retryAfterMs === undefined ? {} : { retryAfterMs }
      return { outcome: 'not_applied', why: 'unavailable', error: generalError(error), ...wait }
    }
    case 404:
      return { outcome: 'not_applied', why: 'rejected', error: tableNotFound(catalog, identifier, error), final: true }
    // Of this copy only: the one before may have come in time, or with a token that was still valid.
    case 401:
    case 408:
    case 419:
      return { outcome: 'not_applied', why: 'rejected', error: generalError(error) }
    default:
      return { outcome: 'not_applied', why: 'rejected', error: generalError(error), final: true }
  }
}

function unknownError(identifier: TableIdentifier, cause: Error): IcebergError {
  return new IcebergError(
    'commit_unknown',
    `The catalog did not say whether it changed ${tableName(identifier)}: ${cause.message}`,
    { details: { table: tableName(identifier) }, cause },
  )
}
