import type { Command } from '../command/command.ts'
import { globalOptions } from '../command/parse.ts'
import { flagOf } from '../configuration/settings.ts'

export const shells = ['bash', 'zsh', 'fish'] as const
export type Shell = (typeof shells)[number]

/** What a shell reads to complete the commands and their flags. */
export function completionScript(shell: Shell, commands: readonly Command[]): string {
  if (shell === 'fish') return fish(commands)
  const script = bash(commands)
  return shell === 'bash' ? script : `autoload -U +X bashcompinit && bashcompinit\n${script}`
}

/** What can follow these words: the rest of a command's name, or its flags. */
function nextWords(commands: readonly Command[]): Map<string, string[]> {
  const next = new Map<string, string[]>([['', []]])
  const add = (line: string, word: string) => next.set(line, [...new Set([...(next.get(line) ?? []), word])])
  for (const command of commands) {
    const [first = '', second] = command.name.split(' ')
    add('', first)
    if (second !== undefined) add(first, second)
    for (const flag of flagsOf(command)) add(command.name, flag)
    for (const { choices = [] } of Object.values(command.arguments)) for (const one of choices) add(command.name, one)
  }
  return next
}

function flagsOf({ options, settings }: Command): string[] {
  return [...Object.keys(options), ...settings, ...Object.keys(globalOptions)].map((name) => `--${flagOf(name)}`)
}

function bash(commands: readonly Command[]): string {
  // The longest names first: a line that begins with `jobs list` also begins with `jobs`.
  const lines = [...nextWords(commands)].sort(([a], [b]) => b.length - a.length)
  const cases = lines.map(([line, words]) => `    "${line}"${line === '' ? '' : '*'}) words="${words.join(' ')}" ;;`)
  return [
    '_fencepost() {',
    '  local words="" typed="${COMP_WORDS[*]:1:COMP_CWORD-1}"',
    '  case "$typed" in',
    ...cases,
    '  esac',
    '  COMPREPLY=($(compgen -W "$words" -- "${COMP_WORDS[COMP_CWORD]}"))',
    '}',
    'complete -o default -F _fencepost fencepost',
  ].join('\n')
}

function fish(commands: readonly Command[]): string {
  const lines = [...nextWords(commands)].flatMap(([line, words]) => {
    const seen = line.split(' ').filter((word) => word !== '')
    const when =
      seen.length === 0
        ? '__fish_use_subcommand'
        : seen.map((word) => `__fish_seen_subcommand_from ${word}`).join('; and ')
    return words.map((word) =>
      word.startsWith('--')
        ? `complete -c fencepost -n '${when}' -l ${word.slice(2)}`
        : `complete -c fencepost -f -n '${when}' -a ${word}`,
    )
  })
  return lines.join('\n')
}
