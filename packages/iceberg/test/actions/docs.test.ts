import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { refusals } from '../../src/actions/refuse.ts'

const read = (path: string): string => readFileSync(fileURLToPath(new URL(path, import.meta.url)), 'utf8')
const page = read('../../../../docs/guides/expiry-and-orphans.md')

/** The first column of the table below a heading. */
function names(heading: string): string[] {
  const section = page.split(/^## /m).find((text) => text.startsWith(`${heading}\n`)) ?? ''
  return [...section.matchAll(/^\| `(\w+)` \|/gm)].map(([, name = '']) => name)
}

/** The members of an interface. */
function members(path: string, name: string): string[] {
  const body = read(`../../src/actions/${path}`).split(`interface ${name} {`)[1]?.split('\n}')[0] ?? ''
  return [...body.matchAll(/^ {2}readonly (\w+)\??:/gm)].map(([, member = '']) => member)
}

test('every option of the two actions is documented, and no other', () => {
  const expiry = members('expire-snapshots/options.ts', 'ExpireSnapshotsOptions')
  expect(expiry.length).toBeGreaterThan(5)
  expect(names('Expiring snapshots')).toEqual(expiry)
  const orphans = members('remove-orphan-files/options.ts', 'RemoveOrphanFilesOptions')
  expect(orphans.length).toBeGreaterThan(5)
  expect(names('Removing orphans')).toEqual(orphans)
})

test('every reason of a refusal is documented', () => {
  expect(names('What is refused')).toEqual([...refusals])
})
