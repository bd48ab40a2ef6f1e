import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { Engine, EngineOptions } from '@fencepost/engine'
import { createTable, openTable, type Catalog, type Table, type TableFacts } from '@fencepost/iceberg'
import { openServer, type Server } from '@fencepost/server'
import { openBed, type Bed } from '../../engine/test/bed.ts'
import type { PausePoint } from '../../engine/src/database/database.ts'
import { Catalogs, maintenance, tableMaintenance, type CatalogsConfig } from '../src/index.ts'

export interface HttpAnswer {
  status: number
  headers: Headers
  // What is compared with what is expected, whatever it is.
  // oxlint-disable-next-line typescript/no-explicit-any
  json: any
}

/** The whole service in one process: a JDBC catalog beside the jobs as the default one, and one of files. */
export interface MaintenanceBed {
  bed: Bed
  engine: Engine
  server: Server
  catalogs: Catalogs
  catalogOf(name: 'lake' | 'files'): Promise<Catalog>
  /** One more engine with the operation, as another worker would have. */
  open(options?: Partial<EngineOptions>, hooks?: { pausePoint?: PausePoint }): Promise<Engine>
  http(method: string, path: string, body?: unknown): Promise<HttpAnswer>
  /** Makes a table of small files: `appends` commits of one row each. */
  smallFiles(catalog: 'lake' | 'files', database: string, table: string, appends: number): Promise<Table>
  facts(catalog: 'lake' | 'files', database: string, table: string): Promise<TableFacts>
  rows(catalog: 'lake' | 'files', database: string, table: string): Promise<unknown[]>
  /** Lists the catalogs again. */
  refresh(): Promise<void>
  /** Runs everything that is due. */
  runAll(engine?: Engine): Promise<void>
  close(): Promise<void>
}

export async function openMaintenanceBed(): Promise<MaintenanceBed> {
  const bed = await openBed()
  const folder = mkdtempSync(join(tmpdir(), 'fencepost-lake-'))
  const config: CatalogsConfig = {
    default: 'lake',
    catalogs: {
      lake: { type: 'jdbc', warehouse: pathToFileURL(join(folder, 'lake')).href, properties: {} },
      files: { type: 'files', warehouse: pathToFileURL(join(folder, 'files')).href, properties: {} },
    },
  }
  const catalogs = new Catalogs(config, bed.url)
  const operations = [tableMaintenance(catalogs, { isolation: 'none', leaseMs: 60_000 })]
  const open: MaintenanceBed['open'] = (options = {}, hooks = {}) => bed.open({ operations, ...options }, hooks)
  const engine = await open()
  // Refreshed by tests alone, so that they know when.
  const server = await openServer({
    engine,
    port: 0,
    applications: [maintenance(catalogs, { refreshMs: 2_000_000_000 })],
  })
  const catalogOf: MaintenanceBed['catalogOf'] = async (name) => (await catalogs.open(name)).catalog
  const table = async (name: 'lake' | 'files', database: string, of: string) =>
    openTable(await catalogOf(name), { namespace: database.split('.'), name: of })
  const http: MaintenanceBed['http'] = async (method, path, body) => {
    const init =
      body === undefined ? {} : { body: JSON.stringify(body), headers: { 'content-type': 'application/json' } }
    const answer = await fetch(`${server.url}${path}`, { method, ...init })
    const text = await answer.text()
    return { status: answer.status, headers: answer.headers, json: text === '' ? undefined : JSON.parse(text) }
  }
  return {
    bed,
    engine,
    server,
    catalogs,
    catalogOf,
    open,
    http,
    smallFiles: async (name, database, of, appends) => makeSmallFiles(await catalogOf(name), database, of, appends),
    facts: async (...of) => (await table(...of)).facts(),
    rows: async (...of) => {
      const one = await table(...of)
      const rows: unknown[] = []
      for await (const batch of one.scan()) rows.push(...batch)
      await one.close()
      return rows.map((row) => String((row as { id: unknown }).id)).sort()
    },
    refresh: async () => {
      await http('POST', '/catalogs/refresh')
    },
    runAll: async (by = engine) => {
      for (;;) {
        const attempts = await by.claim()
        if (attempts.length === 0) return
        for (const attempt of attempts) await by.run(attempt)
      }
    },
    close: async () => {
      await server.close()
      await catalogs.close()
      await bed.close()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

async function makeSmallFiles(catalog: Catalog, database: string, name: string, appends: number): Promise<Table> {
  const namespace = database.split('.')
  for (let depth = 1; depth <= namespace.length; depth += 1) {
    await catalog.createNamespace(namespace.slice(0, depth)).catch(() => {}) // it is there
  }
  const table = await createTable(
    catalog,
    { namespace, name },
    {
      schema: { fields: [{ id: 1, name: 'id', required: true, type: { type: 'long' } }] },
      properties: { 'commit.retry.min-wait-ms': '1', 'commit.manifest-merge.enabled': 'false' },
    },
  )
  for (let nth = 0; nth < appends; nth += 1) await table.append([{ id: BigInt(nth) }])
  await table.close()
  return table
}
