import { FencepostApiError, type Client, type Job, type JobEvent } from '@fencepost/client'
import { bar, percent } from '../output/bar.ts'
import type { Output } from '../output/output.ts'
import { Screen } from '../output/screen.ts'
import { describeEvent, describeJob, progressOf, statusWord } from './describe.ts'

// Progress that is set without an event is seen so often.
const lookMs = 1_000
// A server that restarts is waited for, one that is gone is not.
const giveUpAfterMs = 30_000

/**
 * Shows a job until it has ended: a bar and its events on a terminal, its events elsewhere; as JSON the job itself, once
 * for every change that was seen.
 */
export async function watchJob(client: Client, jobId: string, output: Output): Promise<Job> {
  const show = viewer(output)
  const latest = new Latest(client, jobId)
  show(await latest.look(), [])
  const timer = setInterval(
    () =>
      void latest.tryToLook().then(
        (job) => show(job, []),
        () => {},
      ),
    lookMs,
  )
  try {
    for await (const event of client.events(jobId, { giveUpAfterMs })) show(await latest.tryToLook(), [event])
  } finally {
    clearInterval(timer)
  }
  const job = await client.waitFor(jobId, { timeoutMs: giveUpAfterMs })
  show(job, [])
  if (!output.json) output.answer(job, () => `\n${describeJob(job, output)}`)
  return job
}

/** The job as it was seen last. Answers may overtake each other: one that was asked for earlier never counts again. */
class Latest {
  readonly #client: Client
  readonly #jobId: string
  #asked = 0
  #seen: { job: Job; asked: number } | undefined

  constructor(client: Client, jobId: string) {
    this.#client = client
    this.#jobId = jobId
  }

  async look(): Promise<Job> {
    this.#asked += 1
    const asked = this.#asked
    const job = await this.#client.getJob(this.#jobId)
    if (this.#seen === undefined || asked > this.#seen.asked) this.#seen = { job, asked }
    return this.#seen.job
  }

  /** What was seen last, if the server cannot be asked now: it is for the stream of events to give up. */
  async tryToLook(): Promise<Job> {
    try {
      return await this.look()
    } catch (error) {
      if (this.#seen === undefined || !(error instanceof FencepostApiError) || !error.retryable) throw error
      return this.#seen.job
    }
  }
}

type Show = (job: Job, events: readonly JobEvent[]) => void

function viewer(output: Output): Show {
  if (output.json) return jsonLines(output)
  if (!output.terminal)
    return (_, events) => events.forEach((event) => output.draw(`${describeEvent(event, output)}\n`))
  const screen = new Screen(output)
  return (job, events) =>
    screen.update(
      events.map((event) => describeEvent(event, output)),
      statusLines(job, output),
    )
}

function jsonLines(output: Output): Show {
  let last = ''
  return (job) => {
    const line = JSON.stringify(job)
    if (line !== last) output.answer(job, () => '')
    last = line
  }
}

/** What is drawn again: the bar, and where the job stands. */
function statusLines(job: Job, output: Output): string[] {
  const about = `attempt ${job.attempts} of ${job.max_attempts}`
  const narrow = job.status.length + job.operation.length + about.length + 4 >= output.columns
  // A line that wraps could not be drawn over.
  const rest = narrow ? '' : `  ${job.operation}  ${output.style('dim', about)}`
  const state = `${statusWord(job, output)}${rest}`
  const progress = progressOf(job) ?? (job.status === 'completed' ? { current: 1, total: 1 } : null)
  if (progress === null) return [state]
  const said = percent(progress)
  const width = Math.max(1, Math.min(40, output.columns - said.length - 2))
  return [`${output.style('cyan', bar(progress, width))} ${said}`, state]
}
