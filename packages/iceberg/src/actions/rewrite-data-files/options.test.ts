import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { rewriteDataFilesOptions } from './options.ts'

const page = fileURLToPath(new URL('../../../../../docs/guides/rewrite-data-files.md', import.meta.url))

test('the guide lists every option with its default, what is allowed and what it means', () => {
  const [, section = ''] = readFileSync(page, 'utf8').split('\n## Options\n')
  const listed = section
    .split('\n## ')[0]
    ?.split('\n')
    .filter((line) => line.startsWith('| `'))
  const expected = Object.entries(rewriteDataFilesOptions).map(
    ([name, { defaultText, allowed, doc }]) => `| \`${name}\` | ${defaultText} | ${allowed} | ${doc} |`,
  )
  expect(listed).toEqual(expected)
})
