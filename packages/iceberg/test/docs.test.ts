import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { expect, test, vi } from 'vitest'
import { icebergErrorCodes, plainTypeNames, Table, unreadableTypes, unwritableTypes, type Type } from '../src/index.ts'
import { rewritePositionDeletesOptions } from '../src/actions/rewrite-position-delete-files/options.ts'
import { tableProperties } from '../src/properties.ts'

const page = readFileSync(fileURLToPath(new URL('../../../docs/guides/iceberg.md', import.meta.url)), 'utf8')

function blocks(language: string): string[] {
  return [...page.matchAll(new RegExp('```' + language + '\\n(.*?)```', 'gs'))].map(([, text = '']) => text)
}

function tableOf(heading: string): string[][] {
  const section = page.split(/^## /m).find((text) => text.startsWith(`${heading}\n`)) ?? ''
  const lines = section.split('\n').filter((line) => line.startsWith('|'))
  return lines.slice(2).map((line) =>
    line
      .split('|')
      .slice(1, -1)
      .map((cell) => cell.trim()),
  )
}

const unquoted = (cell = ''): string => cell.replaceAll('`', '')

test('the example runs as written and prints what it says', async () => {
  const [example = ''] = blocks('ts')
  const [output = ''] = blocks('text')
  const file = fileURLToPath(new URL(`docs-example-${process.pid}.ts`, import.meta.url))
  const log = vi.spyOn(console, 'log').mockImplementation(() => {})
  try {
    writeFileSync(file, example)
    await import(file)
    expect(`${log.mock.calls.map((line) => line.join(' ')).join('\n')}\n`).toBe(output)
  } finally {
    log.mockRestore()
    rmSync(file, { force: true })
  }
})

test('the table of types is that of the code', () => {
  const names: Type['type'][] = [
    ...plainTypeNames,
    'fixed',
    'decimal',
    'geometry',
    'geography',
    'struct',
    'list',
    'map',
  ]
  const listed = tableOf('Types').map(([name, read, written, why]) => [unquoted(name), read, written, why])
  const expected = names.map((name) => [
    name,
    unreadableTypes[name] === undefined ? 'yes' : 'no',
    unwritableTypes[name] === undefined ? 'yes' : 'no',
    unwritableTypes[name] ?? '',
  ])
  const sorted = (list: (string | undefined)[][]) => list.map((line) => line.join(' | ')).toSorted()
  expect(sorted(listed)).toEqual(sorted(expected))
})

test('the table of codes is that of the code, and what is refused has a code of it', () => {
  const listed = tableOf('Errors').map(([code, meaning]) => [unquoted(code), meaning])
  expect(Object.fromEntries(listed)).toEqual(icebergErrorCodes)
  for (const [what, code] of tableOf('What is refused')) expect(icebergErrorCodes, what).toHaveProperty(unquoted(code))
})

test('the table of properties has every property with its default', () => {
  const listed = tableOf('Table properties').map(([key, otherwise]) => [unquoted(key), unquoted(otherwise)])
  const expected = Object.values(tableProperties).map(({ key, default: otherwise }) => {
    if (typeof otherwise === 'object') throw new Error(`${key} has a default that has no text`)
    return [key, otherwise === undefined ? 'none' : String(otherwise)]
  })
  expect(Object.fromEntries(listed)).toEqual({
    ...Object.fromEntries(expected),
    'history.expire.max-ref-age-ms': 'for ever',
    'write.metadata.metrics.column.<path>': 'none',
  })
})

test('the table of calls names every one that a table has', () => {
  const calls = tableOf('Writing').flatMap(([call = '']) => [...call.matchAll(/`(\w+)\(/g)].map(([, name]) => name))
  const methods = Object.getOwnPropertyNames(Table.prototype).filter(
    (name) => name !== 'constructor' && Object.getOwnPropertyDescriptor(Table.prototype, name)?.get === undefined,
  )
  expect(new Set(calls)).toEqual(new Set(methods))
})

test('the page on safety names tests that are there', () => {
  const root = fileURLToPath(new URL('../', import.meta.url))
  const sources = readdirSync(root, { recursive: true, encoding: 'utf8' })
    .filter((path) => /^(src|test)\/.*\.test\.ts$/.test(path))
    .map((path) => readFileSync(`${root}${path}`, 'utf8'))
  const safety = readFileSync(fileURLToPath(new URL('../../../docs/concepts/safety.md', import.meta.url)), 'utf8')
  const rows = safety.split('\n').filter((line) => line.startsWith('| ') && !line.startsWith('| disaster'))
  const named = rows.flatMap((row) =>
    [...(row.split('|')[3] ?? '').matchAll(/`([^`]+)`/g)].map(([, name = '']) => name),
  )
  expect(named.length).toBeGreaterThan(20)
  expect(named.filter((name) => !sources.some((text) => text.includes(`'${name}'`)))).toEqual([])
})

test('the options of rewriting manifests and position deletes are those of the code', () => {
  const read = (path: string) => readFileSync(fileURLToPath(new URL(`../../../${path}`, import.meta.url)), 'utf8')
  const guide = read('docs/guides/manifests-and-position-deletes.md').split(/^## /m)
  const listed = (heading: string) => {
    const section = guide.find((text) => text.startsWith(`${heading}\n`)) ?? ''
    return [...section.matchAll(/^\| `([\w.-]+)` \|/gm)].map(([, option = '']) => option)
  }
  const source = read('packages/iceberg/src/actions/rewrite-manifests/plan.ts')
  const body = source.split('export interface RewriteManifestsOptions {')[1]?.split('\n}')[0] ?? ''
  expect(listed('Manifests')).toEqual([...body.matchAll(/readonly (\w+)\?:/g)].map(([, option]) => option))
  expect(listed('Position deletes')).toEqual([...rewritePositionDeletesOptions])
})
