import { spawn } from 'node:child_process'
import { mkdtemp, readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build } from 'vite'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createTestDatabase, type TestDatabase } from '../../../engine/test/database.ts'
import { HadoopCatalog, JdbcCatalog, type Catalog } from '../../src/index.ts'
import { chainOf, newTable } from '../catalogs/tables.ts'

const processes = 6
const commits = 8
let root: string
let database: TestDatabase
let program: string
beforeAll(async () => {
  // Where the program finds its packages.
  root = await mkdtemp(fileURLToPath(new URL('../../../../node_modules/.committers-', import.meta.url)))
  database = await createTestDatabase()
  program = await bundle()
})
afterAll(async () => {
  await database.drop()
  await rm(root, { recursive: true, force: true })
})

/** Node 20 runs no TypeScript, so the program is made of the sources that are being tested. */
async function bundle(): Promise<string> {
  const entry = fileURLToPath(new URL('committer.ts', import.meta.url))
  await build({
    configFile: false,
    logLevel: 'error',
    build: {
      ssr: entry,
      outDir: root,
      emptyOutDir: false,
      rolldownOptions: { output: { entryFileNames: 'committer.mjs' } },
    },
  })
  return join(root, 'committer.mjs')
}

function run(options: Record<string, string>): Promise<string[]> {
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, [program, JSON.stringify(options), String(commits)])
    let [out, problems] = ['', '']
    child.stdout.on('data', (data: Buffer) => (out += data.toString()))
    child.stderr.on('data', (data: Buffer) => (problems += data.toString()))
    child.on('close', (code) => (code === 0 ? resolve(out.trim().split('\n')) : reject(new Error(problems))))
  })
}

async function expectNoneLost(catalog: Catalog, options: Record<string, string>): Promise<void> {
  const properties = {
    'commit.retry.num-retries': '500',
    'commit.retry.min-wait-ms': '2',
    'commit.retry.max-wait-ms': '60',
  }
  await catalog.createNamespace(['db'])
  const { metadata } = await catalog.createTable({ namespace: ['db'], name: 't' }, { ...newTable, properties })
  const applied = await Promise.all(Array.from({ length: processes }, () => run(options)))
  const chain = chainOf(await catalog.loadTable({ namespace: ['db'], name: 't' })).map(String)
  expect(chain.toSorted()).toEqual(applied.flat().toSorted())
  expect(chain).toHaveLength(processes * commits)
  // Lost tries have left nothing: each file belongs to a snapshot.
  const files = (await readdir(`${metadata.location}/metadata`)).filter((name) => name.startsWith('snap-'))
  expect(files.toSorted()).toEqual(chain.map((id) => `snap-${id}.avro`).toSorted())
}

test('committers in many processes lose nothing on a JDBC catalog', { timeout: 120_000 }, async () => {
  const options = { kind: 'jdbc', name: 'lake', warehouse: `${root}/jdbc`, database: database.url }
  const catalog = await JdbcCatalog.open(options)
  await expectNoneLost(catalog, options)
  await catalog.close()
})

test('committers in many processes lose nothing on a file system catalog', { timeout: 120_000 }, async () => {
  const options = { kind: 'hadoop', name: 'files', warehouse: `${root}/hadoop` }
  await expectNoneLost(new HadoopCatalog(options), options)
})
