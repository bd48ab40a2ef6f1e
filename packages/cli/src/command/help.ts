import { exitCodes } from '../exit-codes.ts'
import { flagOf, settings, type Setting } from '../configuration/settings.ts'
import type { Argument, Command, Option } from './command.ts'
import { globalOptions } from './parse.ts'

/** The help of one command. */
export function helpOf(command: Command): string {
  const args = Object.entries(command.arguments)
  return [
    `${command.summary}.`,
    '',
    `Usage: fencepost ${[command.name, ...args.map(usageOf)].join(' ')} [options]`,
    ...section(
      'Arguments',
      args.map(([name, { description }]) => [name, description]),
    ),
    ...section('Options', Object.entries(command.options).map(optionLine)),
    ...section(
      'Settings, also by variable or in the configuration file',
      command.settings.map((name) => settingLine(name)),
    ),
    ...section('Everywhere', Object.entries(globalOptions).map(optionLine)),
  ].join('\n')
}

/** The help of a group, `jobs`, or of everything. */
export function helpOfGroup(group: string | undefined, commands: readonly Command[]): string {
  const lines = commands.map((one): [string, string] => [
    [one.name, ...Object.entries(one.arguments).map(usageOf)].join(' '),
    one.summary,
  ])
  const exits = Object.values(exitCodes).map(({ code, meaning }): [string, string] => [String(code), meaning])
  return [
    group === undefined ? 'Fenced background jobs on Postgres.' : `The commands of ${group}.`,
    '',
    `Usage: fencepost ${group === undefined ? '' : `${group} `}<command> [options]`,
    ...section('Commands', lines),
    ...section('Everywhere', [
      ...Object.entries(globalOptions).map(optionLine),
      ...(group === undefined ? [['--version', 'Print the version.'] as const] : []),
    ]),
    ...(group === undefined ? section('Exit codes', exits) : []),
    '',
    'fencepost <command> --help tells more about a command.',
  ].join('\n')
}

function usageOf([name, { optional = false, choices }]: [string, Argument]): string {
  const shown = choices === undefined ? `<${name}>` : choices.join('|')
  return optional ? `[${shown}]` : shown
}

function optionLine([name, option]: [string, Option]): [string, string] {
  const byDefault = option.default === undefined ? '' : ` Default: ${option.default}.`
  return [flagWithValue(name, option), `${option.description}${byDefault}`]
}

function settingLine(name: keyof typeof settings): [string, string] {
  const setting: Setting = settings[name]
  const [left, right] = optionLine([name, setting])
  return [left, `${right} ${setting.env.map((variable) => `$${variable}`).join(', ')}.`]
}

/** A flag as it is typed: --port <number>. */
function flagWithValue(name: string, { kind, placeholder, choices, default: byDefault }: Option): string {
  const flag = flagOf(name)
  if (kind === 'boolean') return byDefault === true ? `--[no-]${flag}` : `--${flag}`
  return `--${flag} <${choices?.join('|') ?? placeholder ?? 'text'}>`
}

function section(title: string, lines: readonly (readonly [string, string])[]): string[] {
  if (lines.length === 0) return []
  const width = Math.min(34, Math.max(...lines.map(([left]) => left.length)))
  const laidOut = lines.map(([left, right]) =>
    left.length > width ? `  ${left}\n  ${' '.repeat(width)}  ${right}` : `  ${left.padEnd(width)}  ${right}`,
  )
  return ['', `${title}:`, ...laidOut]
}
