import fc, { type Arbitrary } from 'fast-check'
import type { DrainLevel } from '../../src/lifecycle/drain.ts'
import type { FailWhen } from '../../src/lifecycle/defer.ts'

/*
 * What can happen in a history, as plain data.
 *
 * Generated commands point at jobs and attempts by number, modulo what exists when their turn comes; resolve() in
 * resolve.ts turns them into the same commands about given ones. All times are whole minutes of Postgres's clock.
 */

/** A job that somebody asks for. */
export interface Wanted {
  lock?: string | undefined
  slot?: string | undefined
  dedup?: string | undefined
  priority: number
  delay: number
  maxAttempts: number
}

/** The same with its number, which travels in the payload: so the job is known again wherever it turns up. */
export interface Numbered extends Wanted {
  job: number
}

/** Which attempt acts: the nth of those that hold their fence, or of the zombies. */
export interface Who {
  zombie: boolean
  nth: number
}

export type Ending = 'complete' | 'fail' | 'release'

/** A command, about attempts pointed at by A and wanted jobs of form W. */
export type Command<A, W> =
  | { do: 'submit'; wanted: W[]; inside: 'commit' | 'rollback' | undefined }
  | { do: 'claim'; worker: string; limit: number; lease: number }
  | { do: 'claim_job'; job: number; worker: string; lease: number }
  | { do: 'renew'; attempts: A[] }
  | { do: 'advance'; minutes: number }
  | { do: 'complete'; attempt: A }
  | { do: 'fail'; attempt: A; permanent: boolean }
  | { do: 'retry_later'; attempt: A; delay: number }
  | { do: 'release'; attempt: A }
  | { do: 'defer'; attempt: A; children: W[]; failWhen: FailWhen }
  /** With rivals, all other attempts at the job of the first one report in the same batch. */
  | { do: 'settle_all'; endings: { attempt: A; ending: Ending; withStep: boolean }[]; rivals: boolean }
  | { do: 'let_go'; attempt: A }
  | { do: 'chain'; attempt: A; wanted: W }
  | { do: 'emit'; attempt: A; progress: number | undefined }
  | { do: 'progress'; attempt: A; current: number }
  | { do: 'record_step'; attempt: A; step: string; success: boolean }
  | { do: 'run_step'; attempt: A; step: string }
  | { do: 'transaction'; attempt: A }
  | { do: 'cancel'; job: number }
  | { do: 'recover'; job: number }
  | { do: 'delete'; job: number }
  | { do: 'abort_pipeline'; job: number }
  | { do: 'sweep' }
  | { do: 'retain'; batch: number }
  | { do: 'drain'; level: DrainLevel }

/** A command as it is generated, and as it is carried out. */
export type Wish = Command<Who, Wanted>
export type Step = Command<number, Numbered>

/** How often each command is drawn. */
export type Weights = Record<Wish['do'], number>

// The clock of a history moves by whole minutes. Real time also passes, but far less than one minute: so a lease taken
// at minute 5 for 20 has passed at minute 25, and not at minute 24, however slow the machine.
const leases = [20, 60, 200]
const delays = [0, 0, 0, 0, 0, 5, 90]
const maxParts = 7
const advances = [1, 6, 25, 31, 31, 31, 61, 100, 210, 3000]

const pick = <T>(...values: readonly T[]) => fc.constantFrom(...values)
const number = fc.nat({ max: 999 })
const worker = pick('worker-1', 'worker-2', 'worker-3')
const lease = pick(...leases)

const wanted: Arbitrary<Wanted> = fc.record({
  lock: pick(undefined, undefined, undefined, undefined, 'lock-a', 'lock-b', 'lock-c'),
  slot: pick(undefined, undefined, undefined, 'slot-a', 'slot-b'),
  dedup: pick(undefined, undefined, undefined, undefined, undefined, 'dedup-a', 'dedup-b'),
  priority: pick(0, 0, 1, -1),
  delay: pick(...delays),
  maxAttempts: pick(1, 2, 2, 3, 3),
})

// Attempts that hold their fence and zombies act about equally often.
const who: Arbitrary<Who> = fc.record({ zombie: pick(false, false, true), nth: number })
const failWhen: Arbitrary<FailWhen> = pick<FailWhen>('any', 'all', { ratio: 0 }, { ratio: 0.5 }, { ratio: 1 })
const ending = fc.record({
  attempt: who,
  ending: pick<Ending>('complete', 'complete', 'fail', 'release'),
  withStep: pick(false, false, true),
})

type Arbitraries = { [Kind in Wish['do']]: Arbitrary<Omit<Extract<Wish, { do: Kind }>, 'do'>> }

const arbitraries: Arbitraries = {
  submit: fc.record({
    wanted: fc.oneof(
      { weight: 4, arbitrary: fc.tuple(wanted) },
      { weight: 1, arbitrary: fc.array(wanted, { minLength: 1, maxLength: 4 }) },
    ),
    inside: pick(undefined, undefined, undefined, undefined, 'commit', 'rollback'),
  }),
  claim: fc.record({ worker, limit: pick(1, 2, 3), lease }),
  claim_job: fc.record({ job: number, worker, lease }),
  renew: fc.record({ attempts: fc.array(who, { minLength: 1, maxLength: 3 }) }),
  advance: fc.record({ minutes: pick(...advances) }),
  complete: fc.record({ attempt: who }),
  fail: fc.record({ attempt: who, permanent: pick(false, false, true) }),
  retry_later: fc.record({ attempt: who, delay: pick(...delays) }),
  release: fc.record({ attempt: who }),
  defer: fc.record({ attempt: who, children: fc.array(wanted, { maxLength: 3 }), failWhen }),
  settle_all: fc.record({ endings: fc.array(ending, { minLength: 1, maxLength: 4 }), rivals: fc.boolean() }),
  let_go: fc.record({ attempt: who }),
  chain: fc.record({ attempt: who, wanted }),
  emit: fc.record({ attempt: who, progress: pick(undefined, 1, 2) }),
  progress: fc.record({ attempt: who, current: pick(4, 5, 6) }),
  record_step: fc.record({ attempt: who, step: pick('read', 'write'), success: fc.boolean() }),
  run_step: fc.record({ attempt: who, step: pick('read', 'write') }),
  transaction: fc.record({ attempt: who }),
  cancel: fc.record({ job: number }),
  recover: fc.record({ job: number }),
  delete: fc.record({ job: number }),
  abort_pipeline: fc.record({ job: number }),
  sweep: fc.record({}),
  retain: fc.record({ batch: pick(1, 1000) }),
  drain: fc.record({ level: pick<DrainLevel>('off', 'off', 'submissions', 'all') }),
}

type OfOne = Extract<Wish, { attempt: Who }>

const wish = <Kind extends Wish['do']>(kind: Kind): Arbitrary<Wish> =>
  (arbitraries[kind] as Arbitrary<object>).map((rest) => ({ do: kind, ...rest }) as Wish)
const steps = (...of: readonly (Arbitrary<Wish> | Wish)[]): Arbitrary<Wish[]> =>
  fc.tuple(...of.map((one) => ('do' in one ? fc.constant(one) : one)))
const current = number.map((nth): Who => ({ zombie: false, nth }))
const zombie = number.map((nth): Who => ({ zombie: true, nth: 4 * nth + 1 })) // see pickAttempt() in resolve.ts
const by = (whom: Arbitrary<Who>, ...kinds: OfOne['do'][]): Arbitrary<Wish> =>
  fc.tuple(fc.oneof(...kinds.map((kind) => wish(kind))), whom).map(([one, attempt]) => ({ ...one, attempt }) as OfOne)
const silence: Wish = { do: 'advance', minutes: 210 }
const ages: Wish = { do: 'advance', minutes: 3000 }
const report = by(zombie, 'complete', 'fail', 'retry_later', 'release', 'defer')
const writing = by(zombie, 'emit', 'progress', 'record_step', 'run_step', 'transaction')
const renewal = zombie.map((attempt): Wish => ({ do: 'renew', attempts: [attempt] }))

// What chance alone seldom gets to: each leaves a history where it becomes interesting.
const scenes: Arbitrary<Wish[]>[] = [
  // An attempt falls silent and another one takes its place; then the first one goes on.
  steps(wish('claim'), silence, wish('claim'), fc.oneof(report, writing, renewal, by(zombie, 'let_go'))),
  steps(wish('claim'), silence, wish('claim'), writing, renewal, report),
  // An operator puts a job back whose worker is at work, and somebody wants to claim it.
  steps(
    { do: 'claim', worker: 'worker-1', limit: 3, lease: 200 },
    { do: 'advance', minutes: 31 },
    wish('recover'),
    wish('claim'),
    fc.oneof(renewal, report, by(zombie, 'let_go')),
    wish('claim'),
  ),
  // A job is cancelled under its worker, and others want its keys.
  steps(wish('claim'), wish('cancel'), wish('submit'), wish('claim'), fc.oneof(renewal, report), wish('claim')),
  // Children end in all ways.
  steps(wish('submit'), wish('claim'), by(current, 'defer'), wish('claim'), wish('cancel')),
  steps(wish('claim'), by(current, 'defer'), wish('claim'), by(current, 'complete'), by(current, 'fail')),
  steps(wish('claim'), by(current, 'chain'), by(current, 'complete')),
  // Everything gets old, also while a parent still waits.
  steps(wish('claim'), by(current, 'defer'), wish('claim'), by(current, 'complete'), ages, wish('retain')),
  steps(ages, wish('sweep'), ages, wish('retain')),
]

/** Histories in which commands come up as often as their weights say, and now and then a scene of several. */
export function wishes(weights: Weights): Arbitrary<Wish[]> {
  const kinds = Object.keys(arbitraries) as Wish['do'][]
  const one = fc.oneof(...kinds.map((kind) => ({ weight: weights[kind], arbitrary: steps(wish(kind)) })))
  const some = fc.oneof({ weight: 4, arbitrary: one }, { weight: 1, arbitrary: fc.oneof(...scenes) })
  // In three parts that may each shrink to nothing; without bias, so that most are long.
  const part = fc.array(some, { maxLength: maxParts, size: 'max' })
  return fc.noBias(fc.tuple(steps(wish('submit'), wish('submit')), part, part, part)).map((parts) => parts.flat(2))
}
