// @ts-check
// The tables of the bench, made with our own writer in a file system catalog, which Spark has too.
import { mkdir, writeFile, utimes } from 'node:fs/promises'
import { join } from 'node:path'
import { createTable, DuckDb, HadoopCatalog, openTable, writeRelation } from '@fencepost/iceberg'

/** @typedef {import('@fencepost/iceberg').Table} Table */

const names = ['id', 'part', 'a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', 'i']
const types = ['long', 'int', 'long', 'string', 'double', 'int', 'string', 'timestamp', 'long', 'string', 'double']
const fields = names.map((name, index) => {
  const type = /** @type {'long'} */ (types[index])
  return { id: index + 1, name, required: false, type: { type } }
})
const columns = `
  id, (id % 10)::int as part, (hash(id) % 1000000)::bigint as a, 'name ' || (hash(id + 1) % 50000) as b,
  (hash(id + 2) % 100000) / 100::double as c, (hash(id + 3) % 100)::int as d, ['red', 'green', 'blue'][(1 + hash(id + 4) % 3)::int] as e,
  timestamp '2026-01-01' + to_seconds(id) as f, id // 7 as g, 'text ' || (hash(id + 5) % 1000) as h, (hash(id + 6) % 1000) / 8::double as i`

const properties = { 'commit.manifest-merge.enabled': 'false', 'write.metadata.previous-versions-max': '1' }

/** @param {string} warehouse */
export function openCatalog(warehouse) {
  return new HadoopCatalog({ name: 'files', warehouse })
}

/**
 * @param {string} warehouse
 * @param {string} name
 * @param {2 | 3} formatVersion
 * @param {{ duckDb?: DuckDb, isPartitioned?: boolean }} [options]
 */
async function newTable(warehouse, name, formatVersion, { duckDb, isPartitioned = false } = {}) {
  const catalog = openCatalog(warehouse)
  const field = { sourceId: 2, fieldId: 1000, name: 'part', transform: /** @type {const} */ ({ name: 'identity' }) }
  return await createTable(
    catalog,
    { namespace: ['db'], name },
    { schema: { fields }, formatVersion, partitionSpec: { fields: isPartitioned ? [field] : [] }, properties },
    duckDb === undefined ? {} : { duckDb },
  )
}

/**
 * A table of so many files of so many rows each, in one snapshot.
 * @param {string} warehouse
 * @param {string} name
 * @param {{ files: number, rows: number, formatVersion?: 2 | 3, isPartitioned?: boolean }} size
 * @param {(table: Table, duckDb: DuckDb, paths: string[]) => Promise<void>} [then]
 */
export async function dataTable(warehouse, name, { files, rows, formatVersion = 2, isPartitioned = false }, then) {
  const duckDb = await DuckDb.open()
  try {
    const table = await newTable(warehouse, name, formatVersion, { duckDb, isPartitioned })
    const added = []
    for (let n = 0; n < files; n += 1) {
      const from = n * rows
      const part = n % 10
      const ids = isPartitioned ? `select range * 10 + ${part} as id` : 'select range as id'
      const select = `select ${columns} from (${ids} from range(${from}, ${from + rows}))`
      const partition = isPartitioned ? { partition: [part] } : {}
      added.push(...(await written(duckDb, table, { select, ...partition })))
    }
    await table.appendFiles(added)
    await then?.(
      table,
      duckDb,
      added.map(({ filePath }) => filePath),
    )
  } finally {
    await duckDb.close()
  }
}

/**
 * @param {DuckDb} duckDb
 * @param {Table} table
 * @param {import('@fencepost/iceberg').Relation} relation
 */
async function written(duckDb, table, relation) {
  const file = await writeRelation(duckDb, table.loaded, relation)
  return file === undefined ? [] : [file]
}

/**
 * Deletes one row of a hundred of each file by its position.
 * @param {Table} table
 * @param {string[]} paths
 * @param {number} rows
 */
export async function deleteOnePercent(table, paths, rows) {
  const positions = Array.from({ length: Math.floor(rows / 100) }, (_, n) => n * 100)
  await table.deletePositions(new Map(paths.map((path) => [path, positions])))
}

/**
 * Files that are not there: what is done to them is done to metadata.
 * @param {string} path
 */
const nothing = (path) => ({
  content: /** @type {const} */ ('data'),
  filePath: path,
  fileFormat: 'parquet',
  specId: 0,
  partition: [],
  recordCount: 1,
  fileSizeInBytes: 4,
})

/**
 * A table of so many commits of so many files.
 * @param {string} warehouse
 * @param {string} name
 * @param {{ commits: number, filesPerCommit: number, onDisk?: boolean }} size
 * @returns {Promise<string>} its location
 */
export async function metadataTable(warehouse, name, { commits, filesPerCommit, onDisk = false }) {
  const table = await newTable(warehouse, name, 2)
  const folder = join(table.metadata.location.replace(/^file:\/\//, ''), 'data')
  await mkdir(folder, { recursive: true })
  for (let commit = 0; commit < commits; commit += 1) {
    const paths = Array.from({ length: filesPerCommit }, (_, n) => join(folder, `${commit}-${n}.parquet`))
    if (onDisk) await Promise.all(paths.map((path) => writeFile(path, 'file')))
    await table.appendFiles(paths.map(nothing))
  }
  return table.metadata.location.replace(/^file:\/\//, '')
}

/**
 * @param {string} location of a table
 * @param {number} count
 */
export async function addOrphans(location, count) {
  for (let n = 0; n < count; n += 1) {
    const path = join(location, 'data', `orphan-${n}.parquet`)
    await writeFile(path, 'file')
    await utimes(path, 1, 1)
  }
}

/**
 * Removes all files from the present snapshot of a table.
 * @param {string} warehouse
 * @param {string} name
 */
export async function emptyTable(warehouse, name) {
  const table = await openTable(openCatalog(warehouse), { namespace: ['db'], name })
  await table.deleteFiles(() => true)
}
