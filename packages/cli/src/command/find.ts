import { UsageError } from '../failure.ts'
import type { Command } from './command.ts'
import { oneOf } from '../configuration/value.ts'

export type Found =
  | { kind: 'command'; command: Command; rest: readonly string[] }
  /** Help is wanted about a group of commands, or about all. */
  | { kind: 'group'; group: string | undefined; commands: readonly Command[] }
  | { kind: 'version' }

const helpFlags = new Set(['--help', '-h'])

/** The command that a line begins with. */
export function findCommand(commands: readonly Command[], typed: readonly string[]): Found {
  const [first, ...others] = typed.filter((word) => word !== '--json')
  if (first === undefined || helpFlags.has(first)) return { kind: 'group', group: undefined, commands }
  if (first === '--version' || first === '-v') return { kind: 'version' }
  // `fencepost help jobs list` is `fencepost jobs list --help`.
  if (first === 'help') return findCommand(commands, [...others, '--help'])
  const alone = commands.find(({ name }) => name === first)
  const rest = typed.slice(typed.indexOf(first) + 1)
  if (alone !== undefined) return { kind: 'command', command: alone, rest: withJson(typed, first, rest) }
  const group = commands.filter(({ name }) => name.startsWith(`${first} `))
  if (group.length === 0) throw new UsageError(`There is no command ${JSON.stringify(first)}.`)
  const [second] = others
  if (second !== undefined && helpFlags.has(second)) return { kind: 'group', group: first, commands: group }
  const command = group.find(({ name }) => name === `${first} ${second}`)
  if (second === undefined || command === undefined) {
    const known = group.map(({ name }) => name.slice(first.length + 1))
    const missing =
      second === undefined ? `${first} needs a command` : `${JSON.stringify(second)} is no command of ${first}`
    throw new UsageError(`${missing}; there are ${oneOf(known)}.`, { command: first })
  }
  return { kind: 'command', command, rest: withJson(typed, second, rest.slice(rest.indexOf(second) + 1)) }
}

// --json may stand before the command.
function withJson(typed: readonly string[], name: string, rest: readonly string[]): readonly string[] {
  return typed.indexOf('--json') !== -1 && typed.indexOf('--json') < typed.indexOf(name) ? ['--json', ...rest] : rest
}
