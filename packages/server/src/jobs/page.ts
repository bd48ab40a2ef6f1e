import type { JobValue } from '@fencepost/client'
import type { Engine, JobPage, PageOptions } from '@fencepost/engine'
import type { Presenter } from '../application.ts'
import { Turns } from '../turns.ts'

const includingAtOnce = 4
// How many jobs are presented at once: what is behind the end of a page is not worth more.
const chunk = 50

/** A page as it is answered. */
export interface PageText {
  /** The JSON of each. */
  items: string[]
  headers: Record<string, string>
}

/** Pages of jobs: bounded in bytes, and those that hold values are made a few at once. */
export class JobPages {
  readonly #present: Presenter
  readonly #maxBytes: number
  readonly #payloadOf: readonly string[]
  readonly #including = new Turns(includingAtOnce)

  constructor(present: Presenter, options: { maxAnswerBytes: number; payloadOf: readonly string[] }) {
    this.#present = present
    this.#maxBytes = options.maxAnswerBytes
    this.#payloadOf = options.payloadOf
  }

  /** Reads a page and writes it as JSON; undefined where `read` finds nothing to make a page of. */
  async page<Page extends JobPage>(
    caller: string,
    include: readonly JobValue[] | undefined,
    read: (options: Pick<PageOptions, 'include' | 'payloadOf' | 'maxBytes'>) => Promise<Page | undefined>,
  ): Promise<(PageText & { page: Page }) | undefined> {
    const make = async () => {
      const values = (include ?? []).filter((value) => value !== 'results')
      const page = await read({ include: values, payloadOf: this.#payloadOf, maxBytes: this.#maxBytes })
      return page && { page, ...(await this.#write(page, include ?? [])) }
    }
    return include === undefined ? make() : this.#including.take(caller, make)
  }

  async #write({ jobs, next }: JobPage, include: readonly JobValue[]): Promise<PageText> {
    const text = new BoundedItems(this.#maxBytes)
    for (let from = 0; from < jobs.length; from += chunk) {
      const some = jobs.slice(from, from + chunk)
      const shown = await this.#present.summaries(some, include)
      for (const json of shown)
        if (!text.add(JSON.stringify(json))) return text.page(true, jobs[text.length - 1]?.jobId)
    }
    return text.page(next !== undefined, next)
  }
}

/** The events of a job as a page. */
export async function eventPage(
  engine: Engine,
  jobId: string,
  options: { after: string; limit?: number },
  maxBytes: number,
  jsonOf: (event: Awaited<ReturnType<Engine['eventPage']>>['events'][number]) => unknown,
): Promise<PageText> {
  const { events, more } = await engine.eventPage(jobId, { ...options, maxBytes })
  return pageOf(events, more, maxBytes, { jsonOf, idOf: ({ id }) => id })
}

/** A page of what has already been read within a bound. */
export function pageOf<Item>(
  items: readonly Item[],
  more: boolean,
  maxBytes: number,
  shown: { jsonOf: (item: Item) => unknown; idOf: (item: Item) => string },
): PageText {
  const text = new BoundedItems(maxBytes)
  const idAt = (nth: number) => (items[nth] === undefined ? undefined : shown.idOf(items[nth]))
  for (const item of items) {
    if (!text.add(JSON.stringify(shown.jsonOf(item)))) return text.page(true, idAt(text.length - 1))
  }
  return text.page(more, idAt(items.length - 1))
}

/** Items of a JSON array, as many as fit into so many bytes; the first in any case. */
class BoundedItems {
  readonly #maxBytes: number
  readonly #items: string[] = []
  #bytes = 0

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes
  }

  get length(): number {
    return this.#items.length
  }

  /** False when there is no room for it. */
  add(item: string): boolean {
    this.#bytes += Buffer.byteLength(item) + 1
    if (this.#bytes > this.#maxBytes && this.#items.length > 0) return false
    this.#items.push(item)
    return true
  }

  page(more: boolean, lastId: string | undefined): PageText {
    return { items: this.#items, headers: more && lastId !== undefined ? { 'next-after': lastId } : {} }
  }
}
