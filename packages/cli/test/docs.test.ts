import { serverDefaults } from '@fencepost/server'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import type { Command } from '../src/command/command.ts'
import { commands } from '../src/commands.ts'
import { globalOptions } from '../src/command/parse.ts'
import type { ValueSpec } from '../src/configuration/value.ts'
import { flagOf, settingNames, settings, type Setting } from '../src/configuration/settings.ts'
import { exitCodes } from '../src/exit-codes.ts'
import { root } from './built-cli.ts'
import { cliBed } from './cli-bed.ts'

const bed = cliBed()

describe('docs/reference/cli.md', () => {
  const page = 'docs/reference/cli.md'

  test('lists exactly the commands, with what they do', () => {
    const listed = tablesBelow(page, 'Commands')[0]
    expect(listed).toEqual(
      commands.map((one) => [`[\`${usageOf(one)}\`](#${one.name.replaceAll(' ', '-')})`, `${one.summary}.`]),
    )
  })

  test('lists exactly the exit codes, with their meaning', () => {
    expect(tablesBelow(page, 'Exit codes')[0]).toEqual(
      Object.values(exitCodes).map(({ code, meaning }) => [String(code), meaning]),
    )
  })

  test('lists exactly the options that every command has', () => {
    expect(tablesBelow(page, 'Everywhere')[0]).toEqual(
      Object.entries(globalOptions).map(([name, { description }]) => [`\`--${name}\``, description]),
    )
  })

  test.each(commands.map((one) => [one.name, one] as const))('lists exactly what %s takes', (name, command) => {
    const text = sectionOf(page, name)
    const [head = ''] = text.trim().split('\n\n')
    const summary = `${command.summary.charAt(0).toLowerCase()}${command.summary.slice(1)}.`
    expect(unwrapped(head)).toBe(`\`fencepost ${usageOf(command).replaceAll('\\|', '|')}\`: ${summary}`)
    const tables = tablesBelow(page, name)
    const args = Object.entries(command.arguments).map(([one, { description }]) => [`\`${one}\``, description])
    if (args.length > 0) expect(tables.shift()).toEqual(args)
    const options = Object.entries(command.options).map(([one, option]) => [
      `\`--${flagOf(one)}\``,
      defaultOf(option.default),
      meaningOf(option),
    ])
    if (options.length > 0) expect(tables.shift()).toEqual(options)
    const listed = unwrapped(/^Settings: (.*?)\.$/ms.exec(text)?.[1] ?? '')
    const flags = command.settings.map((one) => `\`--${flagOf(one)}\``).join(', ')
    expect(listed).toBe(command.settings.length === settingNames.length ? 'all of them' : flags)
  })

  test('lists exactly the checks of doctor', async () => {
    const { lines } = await bed.run(['doctor', '--database', bed.database, '--json'])
    const [{ checks = [] } = {}] = lines as { checks?: { check: string }[] }[]
    expect(
      tablesBelow(page, 'doctor')
        .at(-1)
        ?.map(([check]) => check),
    ).toEqual(checks.map(({ check }) => `\`${check}\``))
  })
})

describe('docs/reference/configuration.md', () => {
  test('lists exactly the settings, with flag, variables, default and meaning', () => {
    expect(tablesBelow('docs/reference/configuration.md', 'Settings')[0]).toEqual(
      settingNames.map((name) => {
        const setting: Setting = settings[name]
        const variables = setting.env.map((variable) => `\`${variable}\``).join(', ')
        return [`\`${name}\``, `\`--${flagOf(name)}\``, variables, defaultOf(setting.default), meaningOf(setting)]
      }),
    )
  })

  test('has the defaults of the engine and of the server', () => {
    const { host, port, maxBodyBytes, rateLimitPerSecond } = serverDefaults
    expect(defaultsOf('host', 'port', 'maxBodyBytes', 'rateLimitPerSecond')).toEqual({
      host,
      port,
      maxBodyBytes,
      rateLimitPerSecond,
    })
    // docs/reference/options.md is tested against the engine.
    const options = new Map(
      ['openEngine', 'work', 'openEmbeddedPostgres'].flatMap((heading) =>
        (tablesBelow('docs/reference/options.md', heading)[0] ?? []).map(
          ([name = '', value = '']) => [name.replaceAll('`', ''), value.replaceAll(/[`'_]/g, '')] as const,
        ),
      ),
    )
    const shared = settingNames.filter((name) => options.has(name) && options.get(name) !== '–')
    expect(shared.length).toBeGreaterThan(6)
    for (const name of shared) expect(String(defaultsOf(name)[name]), name).toBe(options.get(name))
  })
})

describe('--help', () => {
  test('lists every command and exit code, in words and as JSON', async () => {
    const { code, stdout, stderr } = await bed.run(['--help'])
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    for (const { name, summary } of commands)
      expect(stdout).toMatch(new RegExp(`^  ${name}.* ${escaped(summary)}$`, 'm'))
    for (const { code: exit } of Object.values(exitCodes)) expect(stdout).toMatch(new RegExp(`^  ${exit} `, 'm'))
    const [asJson] = (await bed.run(['--help', '--json'])).lines
    expect((asJson as { name: string }[]).map(({ name }) => name)).toEqual(commands.map(({ name }) => name))
  })

  test.each(commands.map((one) => [one.name, one] as const))('of %s tells all that it takes', async (name, command) => {
    const { code, stdout, stderr } = await bed.run([...name.split(' '), '--help'])
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    expect(stdout).toContain(`${command.summary}.\n\nUsage: fencepost ${name}`)
    const taken = [...Object.keys(command.options), ...command.settings, ...Object.keys(globalOptions)].map(flagOf)
    const flags = [...stdout.matchAll(/^ {2}--(?:\[no-\])?([a-z-]+)/gm)].map(([, flag = '']) => flag)
    expect(flags).toEqual(taken)
    for (const argument of Object.keys(command.arguments)) expect(stdout).toMatch(new RegExp(`^  ${argument} `, 'm'))
  })

  test.each([...new Set(commands.flatMap(({ name }) => (name.includes(' ') ? [name.split(' ')[0] ?? ''] : [])))])(
    'of %s lists its commands',
    async (group) => {
      const { code, stdout } = await bed.run([group, '--help'])
      const own = commands.filter(({ name }) => name.startsWith(`${group} `))
      expect(code).toBe(0)
      for (const { name } of own) expect(stdout).toContain(`\n  ${name}`)
    },
  )

  test('can be asked for in other ways', async () => {
    const [help, flag] = [await bed.run(['help', 'jobs', 'list']), await bed.run(['jobs', 'list', '-h'])]
    expect(help.stdout).toBe(flag.stdout)
    const { version } = JSON.parse(readFileSync(join(root, 'packages/cli/package.json'), 'utf8')) as { version: string }
    expect((await bed.run(['--version'])).stdout).toBe(`${version}\n`)
    expect((await bed.run(['--json', '--version'])).lines).toEqual([{ version }])
  })
})

function sectionOf(page: string, heading: string): string {
  const text = readFileSync(join(root, page), 'utf8')
  const section = new RegExp(`^## ${heading}$(.*?)(?=^## |$(?![^]))`, 'ms').exec(text)?.[1]
  if (section === undefined) throw new Error(`${page} has no section ${heading}`)
  return section
}

/** The cells of the tables below a heading, without their heads. */
function tablesBelow(page: string, heading: string): string[][][] {
  const tables = [...sectionOf(page, heading).matchAll(/(?:^\|.*\n?)+/gm)]
  return tables.map(([table]) =>
    table
      .trim()
      .split('\n')
      .slice(2)
      .map((row) =>
        row
          .split(/(?<!\\)\|/)
          .slice(1, -1)
          .map((cell) => cell.trim()),
      ),
  )
}

function usageOf({ name, arguments: args }: Command): string {
  const words = Object.entries(args).map(([argument, { optional, choices }]) => {
    const shown = choices === undefined ? `<${argument}>` : choices.join('\\|')
    return optional ? `[${shown}]` : shown
  })
  return [name, ...words].join(' ')
}

function meaningOf({ description, choices }: ValueSpec): string {
  return choices === undefined
    ? description
    : `${description} One of ${choices.map((choice) => `\`${choice}\``).join(', ')}.`
}

function defaultOf(value: Setting['default']): string {
  return value === undefined ? '–' : `\`${String(value)}\``
}

function defaultsOf(...names: (keyof typeof settings)[]): Record<string, unknown> {
  return Object.fromEntries(names.map((name) => [name, (settings[name] as Setting).default]))
}

function unwrapped(text: string): string {
  return text.replaceAll('\n', ' ')
}

function escaped(text: string): string {
  return text.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&')
}
