// @ts-check
// Plans a scan of the table with this metadata, `all` of it or `filtered`, and prints what it took.
import { readFile } from 'node:fs/promises'
import { LocalStorage, parseTableMetadata, planFiles } from '@fencepost/iceberg'

const [, , location = '', scan] = process.argv
const start = performance.now()
const metadata = parseTableMetadata(await readFile(location), location)
/** @type {import('@fencepost/iceberg').Filter} */
const filter = {
  op: 'and',
  filters: [
    { op: '>=', column: 'day', value: 19_250 },
    { op: '<', column: 'id', value: 750_500_000n },
    { op: 'starts with', column: 'b', value: 'value-' },
  ],
}
let files = 0
const options = scan === 'filtered' ? { filter } : {}
for await (const batch of planFiles({ metadata, storage: new LocalStorage() }, options)) files += batch.length
const seconds = (performance.now() - start) / 1000
console.log(JSON.stringify({ seconds, megabytes: process.resourceUsage().maxRSS / 1024, files }))
