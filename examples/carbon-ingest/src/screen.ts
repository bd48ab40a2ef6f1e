import { basename } from 'node:path'
import { styleText } from 'node:util'
import type { Job } from '@fencepost/engine'

type Style = Parameters<typeof styleText>[0]

export interface Sink {
  write(text: string): unknown
  isTTY?: boolean | undefined
  columns?: number | undefined
}

const barWidth = 10 // so that everything fits 80 columns
const marks = { pending: '·', running: '▸', completed: '✓', failed: '✗', cancelled: '✗' } as const
const colours = { pending: 'dim', running: 'cyan', completed: 'green', failed: 'red', cancelled: 'yellow' } as const

/** Where the tour is shown: jobs as lines that change on a terminal, and one line for every change elsewhere. */
export class Screen {
  readonly #out: Sink
  readonly #terminal: boolean
  readonly #colour: boolean
  readonly #said = new Set<string>()
  #drawn = 0

  constructor(out: Sink, env: Readonly<Record<string, string | undefined>>) {
    this.#out = out
    this.#terminal = out.isTTY === true && env['TERM'] !== 'dumb'
    this.#colour = this.#terminal && !env['NO_COLOR']
  }

  /** A line that stays. On a terminal, one that is too long goes on below, a little to the right. */
  say(text = ''): void {
    this.#drawn = 0
    this.#out.write(`${this.#terminal ? wrapped(text, this.#columns) : text}\n`)
  }

  title(text: string): void {
    this.say(`\n${this.style('bold', text)}`)
  }

  style(style: Style, text: string): string {
    return this.#colour ? styleText(style, text, { validateStream: false }) : text
  }

  /** Shows how far these jobs are; the next call draws over it, unless these were the last ones. */
  jobs(jobs: readonly Job[], last = false): void {
    if (this.#terminal) this.#draw(jobs)
    else for (const job of jobs) this.#sayOnce(job)
    if (last) this.#drawn = 0
  }

  get #columns(): number {
    return this.#out.columns || 80 // 0 where a terminal does not say
  }

  #draw(jobs: readonly Job[]): void {
    const lines = jobs.map((job) => this.style(colours[job.status], lineOf(job).slice(0, this.#columns - 1)))
    this.#out.write(`${'\u001b[1A\u001b[2K'.repeat(this.#drawn)}${lines.map((line) => `${line}\n`).join('')}`)
    this.#drawn = lines.length
  }

  // A progress is worth a line at every quarter.
  #sayOnce(job: Job): void {
    const { current = 0, total = 0 } = job.progress ?? {}
    const quarter = job.status === 'running' && total > 0 ? Math.floor((4 * current) / total) : 0
    const change = [job.jobId, job.status, job.attempts, quarter].join()
    if (this.#said.has(change) || job.status === 'pending') return
    this.#said.add(change)
    this.say(lineOf(job))
  }
}

function lineOf(job: Job): string {
  return `  ${marks[job.status]} ${job.operation.padEnd(15)} ${subjectOf(job).padEnd(29)} ${stateOf(job)}`
}

function subjectOf({ payload }: Job): string {
  const { file, source, module, dataType, year } = payload as Record<string, string | number | undefined>
  if (module !== undefined) return `${module}/${dataType}`
  return file === undefined && source === undefined ? String(year) : basename(String(file ?? source))
}

function stateOf(job: Job): string {
  const again = job.attempts > 1 ? `, attempt ${job.attempts}` : ''
  switch (job.status) {
    case 'pending':
      return 'waits'
    case 'running':
      return `${job.progress === undefined ? 'runs' : progressOf(job.progress)}${again}`
    case 'completed':
      return `completed in ${secondsOf(job)} s${again}`
    case 'failed':
    case 'cancelled':
      return `${job.status}: ${job.error ?? 'no reason given'}`
  }
}

function progressOf({ current, total = 0 }: NonNullable<Job['progress']>): string {
  const part = total === 0 ? 0 : Math.min(1, current / total)
  const full = Math.round(part * barWidth)
  return `${'█'.repeat(full)}${'░'.repeat(barWidth - full)} ${grouped(current)} of ${grouped(total)}`
}

function secondsOf({ startedAt = '', completedAt = '' }: Job): string {
  return ((Date.parse(completedAt) - Date.parse(startedAt)) / 1000).toFixed(1)
}

/** Breaks a line between words. Colours count as width: a line with them ends early, never late. */
function wrapped(text: string, columns: number): string {
  const indent = ' '.repeat(text.search(/\S|$/) + 5)
  const lines: string[] = []
  for (const word of text.split(/(?<=\S) /)) {
    const line = lines.at(-1)
    if (line !== undefined && line.length + 1 + word.length < columns) lines[lines.length - 1] = `${line} ${word}`
    else lines.push(line === undefined ? word : indent + word)
  }
  return lines.join('\n')
}

/** 1234567 as 1,234,567. */
export function grouped(value: number | bigint): string {
  return value.toLocaleString('en-US')
}
