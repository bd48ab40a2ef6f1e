import type { Engine, Job } from '@fencepost/engine'
import type { Screen } from './screen.ts'
import { statusLines } from './status.ts'
import { timelineLines, type Happening } from './timeline.ts'

const lookEveryMs = 250
const maxDescendants = 1_000

/** A family of jobs as it was seen last. */
export interface Family {
  root: Job
  descendants: Job[]
}

/** Shows jobs with all that descends from them, live: what happens as lines that stay, how far they are as bars. */
export class View {
  readonly #engine: Engine
  readonly #screen: Screen
  readonly #seen = new Set<string>()

  constructor(engine: Engine, screen: Screen) {
    this.#engine = engine
    this.#screen = screen
  }

  /** Says something that stays. */
  say(...lines: string[]): void {
    this.#screen.update(lines, [])
  }

  /** Shows these jobs until they are as wanted; until all of them have ended, if nothing is said. */
  async watch(
    jobIds: readonly string[],
    signal: AbortSignal,
    enough: (families: readonly Family[]) => boolean = allEnded,
  ): Promise<Family[]> {
    const changes = new Changes()
    const unwatch = await this.#engine.watchEvents(() => changes.tell())
    try {
      for (;;) {
        signal.throwIfAborted()
        const families = await Promise.all(jobIds.map((jobId) => this.#look(jobId)))
        const news = await this.#news(families)
        const done = enough(families)
        const status = families.flatMap(({ root, descendants }) => statusLines(root, descendants, this.#screen))
        this.#screen.update(timelineLines(news, this.#screen), done ? [] : status)
        if (done) return families
        await changes.next(lookEveryMs, signal)
      }
    } finally {
      await unwatch()
    }
  }

  async #look(jobId: string): Promise<Family> {
    const root = await this.#engine.get(jobId)
    if (root === undefined) throw new Error(`There is no job ${jobId}.`)
    // After it: when the parent has ended, all of them have.
    const descendants = await this.#engine.list({ ancestorJobId: jobId, limit: maxDescendants })
    return { root, descendants }
  }

  /** The events that were not shown yet, by time. */
  async #news(families: readonly Family[]): Promise<Happening[]> {
    const news: Happening[] = []
    for (const { root, descendants } of families) {
      const jobs = new Map([root, ...descendants].map((job) => [job.jobId, job]))
      for (const event of await this.#engine.events(root.jobId, { descendants: true, limit: 10_000 })) {
        const job = jobs.get(event.jobId)
        if (job === undefined || this.#seen.has(event.id)) continue // of a job that came in just now: next time
        this.#seen.add(event.id)
        news.push({ event, job })
      }
    }
    return news.toSorted((a, b) => (a.event.ts < b.event.ts ? -1 : 1))
  }
}

function allEnded(families: readonly Family[]): boolean {
  return families.every(({ root }) => root.completedAt !== undefined)
}

/** Wakes up whoever waits for the next change, at the latest after some time. */
class Changes {
  #changed = false
  #wake: (() => void) | undefined

  tell(): void {
    this.#changed = true
    this.#wake?.()
  }

  async next(maxMs: number, signal: AbortSignal): Promise<void> {
    if (!this.#changed && !signal.aborted) {
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, maxMs)
        this.#wake = () => {
          clearTimeout(timer)
          resolve()
        }
        signal.addEventListener('abort', this.#wake, { once: true })
      })
      if (this.#wake !== undefined) signal.removeEventListener('abort', this.#wake)
    }
    this.#changed = false
    this.#wake = undefined
  }
}
