// For machines without curl: as much of it as the README uses.
import { parseArgs } from 'node:util'

const { values, positionals } = parseArgs({
  args: process.argv.slice(2),
  allowPositionals: true,
  options: {
    silent: { type: 'boolean', short: 's' },
    'no-buffer': { type: 'boolean', short: 'N' },
    request: { type: 'string', short: 'X' },
    header: { type: 'string', short: 'H', multiple: true },
    data: { type: 'string', short: 'd' },
  },
})
const headers = Object.fromEntries((values.header ?? []).map((header) => header.split(/: */)))
const response = await fetch(positionals[0], { method: values.request ?? 'GET', headers, body: values.data })
for await (const chunk of response.body ?? []) process.stdout.write(chunk)
