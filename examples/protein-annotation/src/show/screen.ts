import { styleText } from 'node:util'

export type Style = Parameters<typeof styleText>[0]

/** Where the show is drawn: standard output, or a test's. */
export interface Sink {
  write(text: string): unknown
  isTTY?: boolean | undefined
  columns?: number | undefined
}

const up = '\u001b[1A'
const clearLine = '\u001b[2K'
// oxlint-disable-next-line no-control-regex -- the escape character is what colours begin with
const colours = /\u001b\[[\d;]*m/g

/** Lines that stay, and on a terminal a few below them that are drawn again and again. */
export class Screen {
  /** True where lines can be drawn again. */
  readonly terminal: boolean
  readonly #sink: Sink
  readonly #colours: boolean
  #drawn = 0

  constructor(sink: Sink, options: { plain: boolean; env: Readonly<Record<string, string | undefined>> }) {
    this.#sink = sink
    this.terminal = !options.plain && sink.isTTY === true && options.env['TERM'] !== 'dumb'
    this.#colours = this.terminal && !options.env['NO_COLOR']
  }

  get columns(): number {
    return this.#sink.columns || 80 // 0 where a terminal does not say
  }

  /** Adds lines that stay; the status is drawn below them, in place of the last one. */
  update(staying: readonly string[], status: readonly string[]): void {
    const below = this.terminal ? status.map((line) => this.#fit(line)) : []
    const lines = [...staying.map((line) => (this.terminal ? this.#fit(line) : line)), ...below]
    if (lines.length === 0 && this.#drawn === 0) return
    const erased = `${up}${clearLine}`.repeat(this.#drawn)
    this.#sink.write(`${erased}${lines.map((line) => `${line}\n`).join('')}`)
    this.#drawn = below.length
  }

  style(style: Style, text: string): string {
    return this.#colours ? styleText(style, text, { validateStream: false }) : text
  }

  // A line that wraps could not be drawn over. Colours go with the cut; a line that fits keeps them.
  #fit(line: string): string {
    const bare = line.replaceAll(colours, '')
    return bare.length < this.columns ? line : `${bare.slice(0, this.columns - 2)}…`
  }
}

/** A bar as wide as given: full blocks for what is done. */
export function bar(current: number, total: number, width: number): string {
  const full = total === 0 ? width : Math.round((Math.min(current, total) / total) * width)
  return '█'.repeat(full) + '░'.repeat(width - full)
}
