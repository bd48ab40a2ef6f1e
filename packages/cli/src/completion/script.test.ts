import { execFileSync } from 'node:child_process'
import { expect, test } from 'vitest'
import { commands } from '../commands.ts'
import { completionScript } from './script.ts'

/** What bash offers after these words. */
function offered(...typed: string[]): string[] {
  const words = ['fencepost', ...typed].map((word) => `'${word}'`).join(' ')
  const script = `${completionScript('bash', commands)}
    COMP_WORDS=(${words}); COMP_CWORD=${typed.length}; _fencepost; printf '%s\\n' "\${COMPREPLY[@]}"`
  return execFileSync('bash', ['-c', script], { encoding: 'utf8' }).split('\n').slice(0, -1)
}

test('bash completes commands, their second words, flags and choices', () => {
  const first = new Set(commands.map(({ name }) => name.split(' ')[0]))
  expect(new Set(offered(''))).toEqual(first)
  expect(offered('jobs', 'c')).toEqual(['cancel', 'children'])
  expect(offered('jobs', 'list', '--stat')).toEqual(['--status'])
  expect(offered('jobs', 'list', '--limit', '5', '--ti')).toEqual(['--timeout-ms'])
  expect(offered('drain', 's')).toEqual(['submissions'])
})

test('every shell is given every command and flag', () => {
  for (const shell of ['bash', 'zsh', 'fish'] as const) {
    const script = completionScript(shell, commands)
    for (const { name } of commands) for (const word of name.split(' ')) expect(script).toContain(word)
    expect(script).toContain('idempotency-key')
  }
})
