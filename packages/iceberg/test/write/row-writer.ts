// A process that writes rows: node row-writer.ts <catalog as JSON> <its number> <rounds> <data file of all writers>.
// Before each change it says, as a line of JSON, what it will have written; after it, the snapshot that it made.
import { DuckDb, HadoopCatalog, JdbcCatalog, openTable, type Catalog, type Snapshot } from '../../src/index.ts'

const [given = '', number = '0', rounds = '1', shared = ''] = process.argv.slice(2)
const options = JSON.parse(given) as { kind: 'jdbc' | 'hadoop'; name: string; warehouse: string; database: string }
const jdbc = options.kind === 'jdbc' ? await JdbcCatalog.open(options) : undefined
const catalog: Catalog = jdbc ?? new HadoopCatalog(options)
const duckDb = await DuckDb.open({ threads: 1 })
const table = await openTable(catalog, { namespace: ['db'], name: 't' }, { duckDb })

const writer = Number(number)
let last = writer * 1000
const row = (id: number) => ({ id: BigInt(id), writer })
const say = (line: object): void => void process.stdout.write(`${JSON.stringify(line)}\n`)

let ids: number[] = []
let positions: number[] = []
async function change(next: { ids?: number[]; positions?: number[] }, commit: () => Promise<Snapshot | undefined>) {
  ;[ids, positions] = [next.ids ?? ids, next.positions ?? positions]
  say({ ids, positions })
  const snapshot = await commit()
  say({ applied: String(snapshot?.snapshotId) })
}

for (let round = 0; round < Number(rounds); round += 1) {
  const [first, second] = [(last += 1), (last += 1)]
  await change({ ids: [...ids, first, second] }, () => table.append([row(first), row(second)]))
  // A position of a file that all writers delete from.
  const position = writer * Number(rounds) + round
  await change({ positions: [...positions, position] }, () => table.deletePositions(new Map([[shared, [position]]])))
  const [gone = 0, ...kept] = ids
  const other = (last += 1)
  await change({ ids: [...kept, other] }, () =>
    table.deleteEqual(['id', 'writer'], [row(gone)], { append: [row(other)] }),
  )
  if (round % 2 === 1) continue
  const [one, two] = [(last += 1), (last += 1)]
  await change({ ids: [one, two] }, () => table.overwrite([row(one), row(two)], { replace: 'partitions' }))
}
await duckDb.close()
await jdbc?.close()
