import {
  apiErrors,
  errorsOf,
  job,
  routes,
  submission,
  tableRoutes,
  type ApiErrorCode,
  type Route,
} from '@fencepost/client'
import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { serverDefaults } from '../src/index.ts'
import { metricTable } from '../src/metrics/table.ts'
import { openApiDocument } from '../src/openapi/document.ts'
import { docsPage } from '../src/openapi/page.ts'

const read = (path: string) => readFileSync(new URL(`../../../${path}`, import.meta.url), 'utf8')
/** The cells of the first table below a heading, without its head. */
const tableOf = (page: string, heading: string) => {
  const below = read(page).split(`\n## ${heading}\n`)[1]?.split('\n## ')[0] ?? ''
  const rows = below.split('\n').filter((line) => line.startsWith('|'))
  return rows.slice(2).map((row) => row.split(' | ').map((cell) => cell.replace(/^\| | \|$/g, '').trim()))
}
const code = (text: string | undefined) => text?.replaceAll('`', '') ?? ''
const all: readonly Route[] = Object.values(routes)

test('docs/reference/errors.md lists exactly the codes, with status and meaning', () => {
  const listed = tableOf('docs/reference/errors.md', 'Codes').map(([name, status, meaning]) => [
    code(name),
    { status: Number(status), meaning },
  ])
  expect(Object.fromEntries(listed)).toEqual(apiErrors)
})

test('docs/reference/errors.md says what any request may get', () => {
  const text = read('docs/reference/errors.md').split('## Any request')[1]?.split('\n## ')[0] ?? ''
  const named = [...text.matchAll(/`([a-z_]+)`/g)].map(([, name = '']) => name)
  const ofTables: readonly Route[] = Object.values(tableRoutes)
  const own = new Set([...all, ...ofTables].flatMap(({ errors }) => errors))
  const common = new Set(all.flatMap((route) => errorsOf(route)).filter((name) => !own.has(name)))
  expect(named.sort()).toEqual([...common].sort())
  const unused = (Object.keys(apiErrors) as ApiErrorCode[]).filter((name) => !own.has(name) && !common.has(name))
  // These two say that there is no route that could list them.
  expect(unused.sort()).toEqual(['method_not_allowed', 'route_unknown'])
})

test('docs/reference/api.md lists exactly the routes', () => {
  const listed = tableOf('docs/reference/api.md', 'Routes').map(([route, role, status, errors = '', summary]) => ({
    route: code(route),
    role,
    status: Number(status),
    errors: errors === '–' ? [] : errors.split(', ').map(code),
    summary,
  }))
  expect(listed).toEqual(
    all.map(({ method, path, role, status, errors, summary }) => ({
      route: `${method} ${path}`,
      role,
      status,
      errors: [...errors],
      summary,
    })),
  )
})

test('docs/reference/api.md names every field of a job and of a submission', () => {
  const fields = tableOf('docs/reference/api.md', 'A job').flatMap(([names = '']) => names.split(', ').map(code))
  expect(fields.sort()).toEqual(Object.keys(job.shape).sort())
  const text = read('docs/reference/api.md').split('## Submitting')[1]?.split('\n\n')[1] ?? ''
  const named = [...text.matchAll(/`([a-z_]+)`/g)].map(([, name = '']) => name)
  expect(named.sort()).toEqual(Object.keys(submission.shape).sort())
})

test('docs/reference/api.md lists exactly the options, with their defaults', () => {
  const rows = tableOf('docs/reference/api.md', 'Server options')
  const source =
    read('packages/server/src/options.ts').split('export interface ServerOptions {')[1]?.split('\n}')[0] ?? ''
  const declared = [...source.matchAll(/^ {2}(\w+)\??:/gm)].map(([, name = '']) => name)
  expect(rows.map(([name]) => code(name)).sort()).toEqual(declared.sort())
  const defaults = rows
    .filter(([, value]) => value !== '–')
    .map(([name, value]) => [code(name), JSON.parse(code(value).replaceAll('_', '').replaceAll("'", '"'))])
  expect(Object.fromEntries(defaults)).toEqual(serverDefaults)
})

test('docs/reference/metrics.md lists exactly the metrics', () => {
  const rows = tableOf('docs/reference/metrics.md', 'Scraping a server')
  const listed = rows.map(([name, type, , help]) => [code(name), { type, help }])
  expect(Object.fromEntries(listed)).toEqual(metricTable)
})

test('the OpenAPI document has every route, parameter and status, and resolves its references', () => {
  const document = openApiDocument(all, '1.2.3')
  const paths = document['paths'] as Record<
    string,
    Record<string, { responses: object; parameters: { name: string }[] }>
  >
  for (const route of all) {
    const made = paths[route.path]?.[route.method.toLowerCase()]
    const statuses = [route.status, ...errorsOf(route).map((name) => apiErrors[name].status)].map(String)
    expect(Object.keys(made?.responses ?? {}).sort()).toEqual([...new Set(statuses)].sort())
    const wanted = [
      ...Object.keys(route.params?.shape ?? {}),
      ...Object.keys(route.query?.shape ?? {}),
      ...Object.keys(route.requestHeaders ?? {}),
    ]
    expect(made?.parameters.map(({ name }) => name)).toEqual(wanted)
  }
  const schemas = Object.keys((document['components'] as { schemas: object }).schemas)
  const references = [...JSON.stringify(document).matchAll(/"\$ref":"#\/components\/schemas\/(\w+)"/g)]
  expect(references.length).toBeGreaterThan(20)
  expect(references.map(([, name = '']) => name).filter((name) => !schemas.includes(name))).toEqual([])
  const ids = Object.values(paths).flatMap((methods) =>
    Object.values(methods).map((made) => (made as unknown as { operationId: string }).operationId),
  )
  expect(new Set(ids).size).toBe(ids.length)
})

test('the page at /docs has every route and code, and loads nothing', () => {
  const page = docsPage(all, '1.2.3')
  for (const { path, summary } of all) {
    expect(page).toContain(`<code>${path}</code>`)
    expect(page).toContain(summary)
  }
  for (const name of Object.keys(apiErrors)) expect(page).toContain(`<code>${name}</code>`)
  expect(page).not.toMatch(/<(script|link|img|iframe)\b|https?:|url\(|@import/)
})
