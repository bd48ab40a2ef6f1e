import fc from 'fast-check'
import { IcebergError, type FolderStorage } from '../../../src/index.ts'
import { anyCommitFault } from '../../commit/commit-faults.ts'
import { Fault, faultyStorage, type FaultMode } from '../../commit/faults.ts'

/** What an action meets with: others, calls that fail, and commits of which the catalog says what is not so. */
export function anyRace<T>(step: fc.Arbitrary<T>, calls: number) {
  const call = fc.integer({ min: 1, max: calls })
  return fc.record({
    /** What others do, and before which call. */
    meanwhile: fc.array(fc.tuple(call, step), { maxLength: 3 }),
    breaks: fc.option(fc.record({ at: call, mode: fc.constantFrom<FaultMode>('before', 'after', 'down') }), {
      freq: 2,
    }),
    commitFaults: fc.array(fc.option(anyCommitFault, { freq: 3 }), { maxLength: 3 }),
  })
}

/** What others do before the n-th call of an action. */
export type Meetings = ReadonlyMap<number, () => Promise<void>>

/**
 * Lets others in before some calls of an action, and breaks it at another. While others are at work no call of the action
 * goes on, so what they read is what they change.
 */
export class Race extends Fault {
  readonly #meetings: Meetings
  #busy: Promise<void> = Promise.resolve()

  constructor(meetings: Meetings, breaks: { readonly at: number; readonly mode: FaultMode } | null) {
    super(breaks?.at ?? Number.POSITIVE_INFINITY, breaks?.mode ?? 'before')
    this.#meetings = meetings
  }

  override async call<T>(name: string, work: () => Promise<T>, error: () => Error): Promise<T> {
    const meet = this.#meetings.get(this.calls + 1)
    if (meet !== undefined) this.#busy = this.#busy.then(meet)
    for (let seen; seen !== this.#busy;) {
      seen = this.#busy
      await seen
    }
    return await super.call(name, work, error)
  }
}

export function racingStorage(storage: FolderStorage, race: Race): FolderStorage {
  return faultyStorage(storage, race)
}

/** An action that meets nothing but other writers may have to give up, and for no other reason. */
export function expectAllowed(
  outcome: unknown,
  { breaks, commitFaults }: { readonly breaks: unknown; readonly commitFaults: readonly unknown[] },
): void {
  if (outcome === undefined) return
  const isBroken = breaks !== null || commitFaults.length > 0
  const isConflict = outcome instanceof IcebergError && outcome.code === 'commit_conflict'
  if (!isConflict && !(isBroken && outcome instanceof IcebergError)) throw outcome as Error
}
