// A process that commits: node committer.ts <catalog as JSON> <how many>. Writes the ids of its snapshots, one per line.
import { commitTable, HadoopCatalog, JdbcCatalog, type Catalog, type JdbcCatalogOptions } from '../../src/index.ts'
import { buildAppend } from '../catalogs/tables.ts'

const [given = '', many = '1'] = process.argv.slice(2)
const options = JSON.parse(given) as { kind: 'jdbc' | 'hadoop'; name: string; warehouse: string; database: string }
const jdbc = options.kind === 'jdbc' ? await JdbcCatalog.open(options satisfies JdbcCatalogOptions) : undefined
const catalog: Catalog = jdbc ?? new HadoopCatalog(options)

for (let n = 0; n < Number(many); n++) {
  let last = 0n
  const outcome = await commitTable(catalog, { namespace: ['db'], name: 't' }, async (table) => {
    const built = await buildAppend(table, String(process.pid))
    last = built.snapshotId
    return built
  })
  if (outcome.outcome !== 'applied') throw new Error(`not applied: ${JSON.stringify(outcome.outcome)}`)
  process.stdout.write(`${last}\n`)
}
await jdbc?.close()
