import fc from 'fast-check'
import { IcebergError, type Catalog, type CommitResult } from '../../src/index.ts'
import { withMember } from './faults.ts'

/**
 * What becomes of one commit. `lost`: no answer, and not applied. `late`: no answer, but applied. `denied`: applied, and
 * said not to be. `repeated`: sent twice, and answered what the second is.
 */
export type CommitFault = 'lost' | 'late' | 'denied' | 'repeated'

export const anyCommitFault = fc.constantFrom<CommitFault>('lost', 'late', 'denied', 'repeated')

/** A catalog whose commits fail one after the other as the list says; null, and all after it, do not. */
export function failingCommits(catalog: Catalog, faults: readonly (CommitFault | null)[]): Catalog {
  let n = 0
  return withMember(catalog, 'commit', async (table, request): Promise<CommitResult> => {
    const fault = faults[n++] ?? null
    const error = new IcebergError('commit_unknown', 'the answer was lost, as the test wants it')
    if (fault === 'lost') return { outcome: 'unknown', error }
    const result = await catalog.commit(table, request)
    if (result.outcome !== 'applied' || fault === null) return result
    if (fault === 'repeated') return answerOfGateway(await catalog.commit(table, request))
    return fault === 'late' ? { outcome: 'unknown', error } : { outcome: 'not_applied', why: 'conflict', error }
  })
}

/** That the second copy was never sent says nothing of the first. */
function answerOfGateway(result: CommitResult): CommitResult {
  if (result.outcome !== 'not_applied') return result
  return { ...result, neverSent: false }
}
