import type { Output } from './output.ts'

const up = '\u001b[1A'
const clearLine = '\u001b[2K'

/** Lines that stay, and below them a few that are drawn again and again. Only for a terminal. */
export class Screen {
  readonly #output: Output
  #drawn = 0

  constructor(output: Output) {
    this.#output = output
  }

  /** Adds lines that stay, and draws the others below. */
  update(staying: readonly string[], status: readonly string[]): void {
    const lines = [...staying, ...status]
    this.#output.draw(`${`${up}${clearLine}`.repeat(this.#drawn)}\r${lines.map((line) => `${line}\n`).join('')}`)
    this.#drawn = status.length
  }
}
