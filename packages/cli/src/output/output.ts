import { styleText } from 'node:util'
import type { Failure } from '../failure.ts'
import { plainLines } from './plain.ts'

export type Style = Parameters<typeof styleText>[0]

// Some versions of Node look at standard output and the environment by themselves, others do not.
const asDecided = { validateStream: false }

/** A stream that is written to: the process's own, or a test's. */
export interface Sink {
  write(text: string): unknown
  isTTY?: boolean | undefined
  columns?: number | undefined
}

/** Where a command says what came of it: to people, or as JSON to programs. */
export class Output {
  readonly json: boolean
  /** True when a person looks: colours and drawings are welcome. */
  readonly terminal: boolean
  readonly #colours: boolean
  readonly #errorColours: boolean
  readonly #stdout: Sink
  readonly #stderr: Sink

  constructor(options: {
    json: boolean
    stdout: Sink
    stderr: Sink
    env: Readonly<Record<string, string | undefined>>
  }) {
    const { json, stdout, stderr, env } = options
    const colourful = !json && !env['NO_COLOR'] && env['TERM'] !== 'dumb'
    this.json = json
    this.terminal = !json && stdout.isTTY === true && env['TERM'] !== 'dumb'
    this.#colours = colourful && stdout.isTTY === true
    this.#errorColours = colourful && stderr.isTTY === true
    this.#stdout = stdout
    this.#stderr = stderr
  }

  get columns(): number {
    return this.#stdout.columns || 80 // 0 where a terminal does not say
  }

  /** Says it in words, or gives the value as one line of JSON. */
  answer(value: unknown, words: () => string): void {
    this.#stdout.write(`${this.json ? JSON.stringify(value) : words()}\n`)
  }

  /** A line for people, which is no answer: programs do not get it. */
  note(text: string): void {
    if (!this.json) this.#stderr.write(`${plainLines(text)}\n`)
  }

  /** Writes to the screen as it is. */
  draw(text: string): void {
    this.#stdout.write(text)
  }

  log(text: string): void {
    this.#stderr.write(`${text}\n`)
  }

  style(style: Style, text: string): string {
    return this.#colours ? styleText(style, text, asDecided) : text
  }

  fail({ code, message, details, hint }: Failure): void {
    if (this.json) {
      this.#stderr.write(`${JSON.stringify({ error: { code, message, details } })}\n`)
      return
    }
    const label = this.#errorColours ? styleText('red', 'error', asDecided) : 'error'
    // An error may quote what a server, or somebody else's job, has said.
    this.#stderr.write(`${label}: ${plainLines(message)}\n${hint === undefined ? '' : `${hint}\n`}`)
  }
}
