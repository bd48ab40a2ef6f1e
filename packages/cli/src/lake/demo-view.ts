import type { ActionState, DemoWatcher, ExaminedTable, TableProgress } from '@fencepost/maintenance'
import { bar } from '../output/bar.ts'
import type { Output } from '../output/output.ts'
import { Screen } from '../output/screen.ts'
import { table } from '../output/table.ts'
import { bandStyles, bytesText, secondsText } from './words.ts'

type Making = Parameters<DemoWatcher['making']>[0]

const barWidth = 24
const marks = { waiting: '·', running: '▸', done: '✓', failed: '✗' } as const

/** Shows the story as it goes on: bars on a terminal, a line for everything that has ended elsewhere. */
export class DemoView implements DemoWatcher {
  readonly #output: Output
  #screen: Screen | undefined
  readonly #said = new Set<string>()

  constructor(output: Output) {
    this.#output = output
    this.#begin('Making a lake that nobody has looked after')
  }

  readonly making = ({ table: name, story, tableDone, done }: Making): void => {
    const line = `  ✓ ${name}: ${story}`
    const isNew = tableDone === 1 && !this.#said.has(name)
    if (isNew) this.#said.add(name)
    this.#show(isNew ? [line] : [], [`  ${this.#bar(done)} ${Math.floor(done * 100)} %`])
    if (done >= 0.9999) this.#end()
  }

  readonly examined = (tables: readonly ExaminedTable[]): void => {
    this.#begin('Its health')
    const rows = tables.map(({ table: name, health }) => [
      `  ${name}`,
      this.#output.style(bandStyles[health.band], `${health.score} ${health.band}`),
      secondsText(health.scanSeconds),
      bytesText(health.wastedBytes.total),
      health.issues.length === 0 ? 'needs nothing' : (health.issues[0]?.message ?? ''),
    ])
    this.#lines([table(['  TABLE', 'SCORE', 'SCAN', 'WASTED', 'FOREMOST'], rows)])
    this.#begin('Maintaining every table that needs it')
  }

  readonly maintaining = (tables: readonly TableProgress[]): void => {
    const staying: string[] = []
    const status: string[] = []
    for (const one of tables) {
      for (const action of one.actions) {
        const key = `${one.table} ${action.action}`
        const hasEnded = action.state === 'done' || action.state === 'failed'
        if (!hasEnded || this.#said.has(key)) continue
        this.#said.add(key)
        staying.push(this.#ended(one.table, action))
      }
      if (one.status === 'running') status.push(...this.#running(one))
    }
    this.#show(staying, status)
    if (tables.every(({ status: state }) => state !== 'pending' && state !== 'running')) this.#end()
  }

  #ended(name: string, { action, state, seconds, message }: ActionState): string {
    const mark = this.#output.style(state === 'done' ? 'green' : 'red', marks[state])
    const took = seconds === undefined ? '' : `  ${secondsText(seconds)}`
    return `  ${mark} ${name.padEnd(21)} ${action.padEnd(30)} ${message ?? ''}${took}`
  }

  #running({ table: name, actions }: TableProgress): string[] {
    const lines = actions.map(({ action, state, share }) => {
      const known = share === undefined ? { current: 0, total: null } : { current: share, total: 1 }
      const drawn = this.#output.style('cyan', bar(known, barWidth))
      const percent = share === undefined ? '' : ` ${Math.floor(share * 100)} %`
      return `    ${marks[state]} ${action.padEnd(30)} ${drawn}${percent}`
    })
    return [`  ${this.#output.style('bold', name)}`, ...lines]
  }

  #bar(done: number): string {
    return this.#output.style('cyan', bar({ current: done, total: 1 }, barWidth))
  }

  #begin(title: string): void {
    this.#lines(['', this.#output.style('bold', title)])
  }

  #lines(lines: readonly string[]): void {
    if (!this.#output.json) this.#output.draw(`${lines.join('\n')}\n`)
  }

  #show(staying: readonly string[], status: readonly string[]): void {
    if (this.#output.json) return
    if (!this.#output.terminal) {
      if (staying.length > 0) this.#lines(staying)
      return
    }
    this.#screen ??= new Screen(this.#output)
    // A line that wraps could not be drawn over.
    const width = this.#output.columns
    const fitting = status.filter((line) => line.length < width + 12)
    this.#screen.update(staying, fitting)
  }

  /** What is drawn goes, and what comes next begins below. */
  #end(): void {
    this.#screen?.update([], [])
    this.#screen = undefined
  }
}
