import { parseArgs, type ParseArgsConfig } from 'node:util'
import { flagOf, settings } from '../configuration/settings.ts'
import { UsageError } from '../failure.ts'
import type { Command } from './command.ts'
import { oneOf, readText, splitList, type ValueSpec } from '../configuration/value.ts'

/** Options that every command has. */
export const globalOptions = {
  json: { kind: 'boolean', description: 'Print JSON, one value to a line, and nothing else.' },
  config: {
    kind: 'text',
    placeholder: 'path',
    description: 'The configuration file, instead of the one in the working directory.',
  },
  help: { kind: 'boolean', description: 'Print this help.' },
} as const satisfies Record<string, ValueSpec>

/** The line that was typed, taken apart. */
export interface Parsed {
  help: boolean
  json: boolean
  config: string | undefined
  args: Record<string, string | undefined>
  options: Record<string, unknown>
  /** Settings that were given as flags. */
  flags: Record<string, { value: unknown; flag: string }>
}

/** Reads what follows the name of a command. */
export function parseLine(command: Command, line: readonly string[]): Parsed {
  const ownSettings = Object.fromEntries(command.settings.map((name) => [name, settings[name]]))
  const specs: Record<string, ValueSpec> = { ...globalOptions, ...command.options, ...ownSettings }
  const names = new Map(Object.keys(specs).map((name) => [flagOf(name), name]))
  const { values, positionals } = split(command, line, specs)
  const given = new Map<string, unknown>()
  for (const [flag, raw] of Object.entries(values)) {
    const name = names.get(flag) ?? flag
    const spec = specs[name]
    if (spec !== undefined) given.set(name, readFlag(spec, raw, `--${flag}`))
  }
  const help = given.get('help') === true
  return {
    help,
    json: given.get('json') === true,
    config: given.get('config') as string | undefined,
    args: help ? {} : readArguments(command, positionals),
    options: Object.fromEntries(
      Object.entries(command.options).map(([name, option]) => [
        name,
        given.get(name) ?? option.default ?? (option.kind === 'boolean' ? false : undefined),
      ]),
    ),
    flags: Object.fromEntries(
      command.settings
        .filter((name) => given.has(name))
        .map((name) => [name, { value: given.get(name), flag: flagOf(name) }]),
    ),
  }
}

function split(command: Command, line: readonly string[], specs: Record<string, ValueSpec>) {
  const options: NonNullable<ParseArgsConfig['options']> = {}
  for (const [name, { kind }] of Object.entries(specs)) {
    const type = kind === 'boolean' ? 'boolean' : 'string'
    options[flagOf(name)] = { type, multiple: kind === 'list', ...(name === 'help' ? { short: 'h' } : {}) }
  }
  try {
    return parseArgs({ args: joinNegative(line), options, allowPositionals: true, allowNegative: true, strict: true })
  } catch (error) {
    // Its messages go on with advice about `--`, which is seldom what is wrong.
    const [message] = (error as Error).message.split('. To specify')
    throw new UsageError(`${message}${message?.endsWith('.') ? '' : '.'}`, { command: command.name, cause: error })
  }
}

// `--priority -3` would be taken for an option -3.
function joinNegative(line: readonly string[]): string[] {
  const args: string[] = []
  for (const word of line) {
    const before = args.at(-1)
    if (/^-\d+$/.test(word) && before !== undefined && /^--[a-z-]+$/.test(before))
      args.splice(-1, 1, `${before}=${word}`)
    else args.push(word)
  }
  return args
}

function readFlag(spec: ValueSpec, raw: unknown, where: string): unknown {
  if (typeof raw === 'string') return readText(spec, raw, where)
  return Array.isArray(raw) ? raw.flatMap((one) => splitList(String(one))) : raw
}

function readArguments(command: Command, given: readonly string[]): Record<string, string | undefined> {
  const specs = Object.entries(command.arguments)
  const refuse = (message: string) => new UsageError(message, { command: command.name })
  if (given.length > specs.length) throw refuse(`${JSON.stringify(given[specs.length])} is one argument too many.`)
  return Object.fromEntries(
    specs.map(([name, { optional = false, choices }], nth) => {
      const value = given[nth]
      if (value === undefined && !optional) throw refuse(`<${name}> is missing.`)
      if (value !== undefined && choices !== undefined && !choices.includes(value)) {
        throw refuse(`${name} is ${JSON.stringify(value)}; give ${oneOf(choices)}.`)
      }
      return [name, value]
    }),
  )
}
