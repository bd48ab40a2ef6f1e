// @ts-check
// Measures what the health of tables is told by: the seconds of a full scan for each manifest, data file, byte and delete.
//   npm run build && node scripts/scan-costs.mjs [--round-trip-ms 10]
// Each cost is the difference between two tables that differ in one thing, divided by how much they differ. To the work
// that is measured here, on local files, one round trip to an object store is added for each manifest, data file and file of
// deletes; comparing with equality deletes that are read already takes none. The bytes are not measured. Run it on a machine
// that does nothing else, and put the numbers into packages/maintenance/src/health/scan-cost.ts.
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { createTable, DuckDb, HadoopCatalog } from '@fencepost/iceberg'

const { values } = parseArgs({ options: { 'round-trip-ms': { type: 'string', default: '10' } } })
const roundTrip = Number(values['round-trip-ms']) / 1000
const rowsPerFile = 200
const tries = 5

const folder = await mkdtemp(join(tmpdir(), 'fencepost-scan-costs-'))
const duckDb = await DuckDb.open({ threads: 1 })
const catalog = new HadoopCatalog({ name: 'costs', warehouse: folder })
await catalog.createNamespace(['db'])
let made = 0

/** @param {number} formatVersion */
async function newTable(formatVersion = 2) {
  made += 1
  return createTable(
    catalog,
    { namespace: ['db'], name: `t${made}` },
    {
      formatVersion: /** @type {2 | 3} */ (formatVersion),
      schema: {
        fields: [
          { id: 1, name: 'id', required: true, type: { type: 'long' } },
          { id: 2, name: 'text', required: true, type: { type: 'string' } },
        ],
      },
      properties: { 'commit.manifest-merge.enabled': 'false' },
    },
    { duckDb },
  )
}

/** @param {number} from @param {number} count */
function rows(from, count) {
  return Array.from({ length: count }, (_, n) => ({ id: BigInt(from + n), text: `value ${(from + n) * 7919}` }))
}

/** The median seconds of a full scan. @param {import('@fencepost/iceberg').Table} table */
async function seconds(table) {
  const took = []
  for (let n = 0; n < tries; n += 1) {
    const startedAt = performance.now()
    for await (const batch of table.scan()) void batch
    took.push((performance.now() - startedAt) / 1000)
  }
  return took.toSorted((a, b) => a - b)[Math.floor(tries / 2)] ?? 0
}

/** So many files, in one manifest or in one each. @param {number} files @param {{ manifests?: boolean, formatVersion?: number }} [options] */
async function tableOf(files, { manifests = false, formatVersion = 2 } = {}) {
  const table = await newTable(formatVersion)
  if (!manifests) await table.append(rows(0, files * rowsPerFile), { maxRowsPerFile: rowsPerFile })
  else for (let n = 0; n < files; n += 1) await table.append(rows(n * rowsPerFile, rowsPerFile))
  return table
}

/** The first position of each file is deleted. @param {import('@fencepost/iceberg').Table} table */
async function deleteFirstRows(table) {
  const paths = new Set()
  for await (const batch of table.scan({ columns: [], metadataColumns: ['_file'] })) {
    for (const row of batch) paths.add(row['_file'])
  }
  await table.deletePositions(new Map([...paths].map((path) => [path, [0]])))
}

try {
  const files = 60
  const one = await seconds(await tableOf(1))
  const many = await tableOf(files)
  const base = await seconds(many)
  const spread = await seconds(await tableOf(files, { manifests: true }))
  await deleteFirstRows(many)
  const positions = await seconds(many)
  const third = await tableOf(files, { formatVersion: 3 })
  const before = await seconds(third)
  await deleteFirstRows(third)
  const vectors = await seconds(third)
  const keyed = await tableOf(files)
  for (let n = 0; n < 4; n += 1) await keyed.deleteEqual(['id'], [{ id: BigInt(n) }])
  const equality = await seconds(keyed)
  const cost = (/** @type {number} */ difference, /** @type {number} */ count, trips = 1) =>
    Number((Math.max(0, difference / count) + trips * roundTrip).toFixed(4))
  console.log(
    JSON.stringify(
      {
        round_trip_ms: roundTrip * 1000,
        manifest: cost(spread - base, files - 1),
        data_file: cost(base - one, files - 1),
        position_delete_file: cost(positions - base, files),
        deletion_vector: cost(vectors - before, files),
        equality_delete: cost(equality - base, 4 * files, 0),
      },
      undefined,
      2,
    ),
  )
} finally {
  await duckDb.close()
  await rm(folder, { recursive: true, force: true })
}
