import { readFileSync } from 'node:fs'
import { tableRoutes, type Route } from '@fencepost/client'
import { rewriteDataFilesOptions, rewritePositionDeletesOptions } from '@fencepost/iceberg'
import { expect, test } from 'vitest'
import { actionOptions } from '../src/operation/action-options.ts'

const page = readFileSync(new URL('../../../docs/guides/maintenance.md', import.meta.url), 'utf8')

test.each(Object.values(tableRoutes) as Route[])('the guide describes $method $path', (route) => {
  const errors = route.errors.length === 0 ? '–' : route.errors.map((code) => `\`${code}\``).join(', ')
  expect(page).toContain(
    `| \`${route.method} ${route.path}\` | ${route.role} | ${route.status} | ${errors} | ${route.summary} |`,
  )
})

const spark = new Set<string>([...Object.keys(rewriteDataFilesOptions), ...rewritePositionDeletesOptions])

test('the guide names every option that is not Spark’s', () => {
  for (const schema of Object.values(actionOptions.shape)) {
    const names = Object.keys(schema.unwrap().shape).filter((name) => !spark.has(name))
    for (const name of names) expect(page).toContain(`\`${name}\``)
  }
})
