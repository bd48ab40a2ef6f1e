import { isDeepStrictEqual } from 'node:util'
import { expect } from 'vitest'
import type { Step, Wish } from './commands.ts'
import { Invariants } from './invariants.ts'
import { apply } from './apply.ts'
import { claimable, emptyModel, heldBy, isLive, type Job, type Model } from './model.ts'
import { resolve } from './resolve.ts'
import { noSnapshot, type Snapshot } from './snapshot.ts'
import { pictureOfModel, pictureOfSnapshot } from './state.ts'
import type { World } from './world.ts'

const maxRounds = 40

/** One history: steps taken in the world and in the model, compared after each. */
class History {
  readonly #world: World
  readonly #invariants: Invariants
  readonly #told: string[] = []
  #model: Model = emptyModel
  #snapshot: Snapshot = noSnapshot
  #began = ''
  #asked = 0
  steps = 0

  constructor(world: World) {
    this.#world = world
    this.#invariants = new Invariants(world)
  }

  async begin(): Promise<void> {
    await this.#world.reset()
    this.#snapshot = await this.#world.look()
    this.#began = this.#snapshot.clock
  }

  async follow(wish: Wish): Promise<void> {
    const step = resolve(this.#model, wish, () => (this.#asked += 1) - 1)
    if (step !== undefined) await this.#take(step)
  }

  async #take(step: Step): Promise<void> {
    this.steps += 1
    this.#told.push(JSON.stringify(step))
    const { answer: expected, next } = apply(this.#model, step)
    const answer = await this.#world.carryOut(step)
    const before = this.#snapshot
    this.#told.push(`  → ${JSON.stringify(answer)}`)
    this.#snapshot = await this.#world.look()
    this.#invariants.check({ step, answer, before, after: this.#snapshot })
    if (!isDeepStrictEqual(answer, expected)) expect(answer, 'the answer').toEqual(expected)
    const [is, should] = [pictureOfSnapshot(this.#world, this.#snapshot, this.#began), pictureOfModel(next)]
    if (!isDeepStrictEqual(is, should)) expect(is, 'the state').toEqual(should)
    this.#model = next
  }

  /** The error of a step, with all that led to it. */
  explain(error: unknown): Error {
    const message = error instanceof Error ? error.message : String(error)
    return new Error(`${message}\n\nThe history, with its answers:\n${this.#told.join('\n')}`, { cause: error })
  }

  /** Works everything off: whatever happened before, every job that was accepted can be brought to its end. */
  async workOff(): Promise<void> {
    if (this.#model.drain !== 'off') await this.#take({ do: 'drain', level: 'off' })
    for (let round = 0; round < maxRounds && this.#jobs(isLive).length > 0; round += 1) {
      await this.#take({ do: 'advance', minutes: 210 }) // longer than any lease and delay
      for (let next = this.#nextOfWork(); next !== undefined; next = this.#nextOfWork()) await this.#take(next)
    }
    const { locks, slots } = this.#model
    if (Object.keys(locks).length > 0 || Object.values(slots).some(({ held }) => held !== undefined)) {
      await this.#take({ do: 'advance', minutes: 210 })
      await this.#take({ do: 'sweep' })
    }
    this.#invariants.checkEnd(this.#snapshot)
  }

  /** What a worker does that nothing happens to: completes what it runs, then claims; the claim also sweeps. */
  #nextOfWork(): Step | undefined {
    const { now, attempts } = this.#model
    const isSilent = ({ leaseUntil }: Job) => leaseUntil !== undefined && leaseUntil <= now
    const running = attempts.flatMap((_, attempt) => {
      const job = heldBy(this.#model, attempt)
      return job === undefined || isSilent(job) ? [] : [{ attempt, ending: 'complete' as const, withStep: false }]
    })
    if (running.length > 0) return { do: 'settle_all', endings: running, rivals: false }
    const isWaiting = this.#jobs((job) => isSilent(job) || claimable(this.#model, job)).length > 0
    return isWaiting ? { do: 'claim', worker: 'worker-1', limit: 20, lease: 20 } : undefined
  }

  #jobs(which: (job: Job) => boolean): Job[] {
    return Object.values(this.#model.jobs).filter(which)
  }
}

/** Plays one history in a world that is then as new; says how many steps were checked. */
export async function play(world: World, wishes: readonly Wish[]): Promise<number> {
  const history = new History(world)
  await history.begin()
  try {
    for (const wish of wishes) await history.follow(wish)
    await history.workOff()
  } catch (error) {
    throw history.explain(error)
  }
  return history.steps
}
