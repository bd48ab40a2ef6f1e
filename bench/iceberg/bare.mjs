// @ts-check
// What the bytes of a table cost without Iceberg: node bare.mjs copy|plain <folder of data> <output>
import { copyFile, mkdir, open, readdir } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { DuckDBInstance } from '@duckdb/node-api'

const [, , way = '', folder = '', output = ''] = process.argv
const names = await readdir(folder, { recursive: true })
const paths = names.filter((name) => name.endsWith('.parquet')).map((name) => join(folder, name))
await mkdir(output, { recursive: true })
const start = performance.now()
if (way === 'copy') {
  const instance = await DuckDBInstance.create(':memory:', { memory_limit: '1GB' })
  const connection = await instance.connect()
  const list = paths.map((path) => `'${path}'`).join(', ')
  const file = join(output, 'all.parquet')
  await connection.run(
    `copy (select * from read_parquet([${list}], hive_partitioning = false)) to '${file}' (format parquet, compression zstd)`,
  )
  await synced(file)
} else {
  for (const path of paths) {
    const copy = join(output, basename(path))
    await copyFile(path, copy)
    await synced(copy)
  }
}
const seconds = (performance.now() - start) / 1000
console.log(JSON.stringify({ seconds, megabytes: process.resourceUsage().maxRSS / 1024, done: paths.length }))

/** @param {string} path */
async function synced(path) {
  const file = await open(path)
  await file.sync()
  await file.close()
}
