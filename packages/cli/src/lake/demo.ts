import { chmod, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { openEmbeddedPostgres, openEngine, stopOnSignals } from '@fencepost/engine'
import { Catalogs, demonstrate, maintenanceMigrations, tableMaintenance, type DemoResult } from '@fencepost/maintenance'
import type { Exit } from '../exit-codes.ts'
import type { Output } from '../output/output.ts'
import { DemoView } from './demo-view.ts'
import { comparison } from './comparison.ts'

/** Runs the whole story in a folder of its own, which is removed afterwards. */
export async function demo(
  { percent, keep }: { readonly percent: number; readonly keep: boolean },
  output: Output,
): Promise<Exit> {
  const startedAt = performance.now()
  const stop = stopOnSignals()
  const folder = await mkdtemp(join(tmpdir(), 'fencepost-demo-'))
  await chmod(folder, 0o755) // as root, the embedded Postgres runs as somebody else, who must get there
  const postgres = await openEmbeddedPostgres({ directory: join(folder, 'postgres') })
  try {
    const result = await runDemo({ url: postgres.url, folder, scale: percent / 100, signal: stop.signal, output })
    const seconds = (performance.now() - startedAt) / 1000
    output.answer(jsonOf(result, seconds), () => comparison(result, seconds, output))
    if (keep) output.note(`The lake is in ${join(folder, 'lake')}.`)
    return result.isHealthy ? 'ok' : 'failed'
  } finally {
    await postgres.close()
    if (!keep) await rm(folder, { recursive: true, force: true })
    stop.dispose()
  }
}

interface DemoRun {
  readonly url: string
  readonly folder: string
  readonly scale: number
  readonly signal: AbortSignal
  readonly output: Output
}

async function runDemo({ url, folder, scale, signal, output }: DemoRun): Promise<DemoResult> {
  const lake = join(folder, 'lake')
  const warehouse = pathToFileURL(lake).href
  const config = { default: 'lake', catalogs: { lake: { type: 'jdbc', warehouse, properties: {} } } } as const
  const catalogs = new Catalogs(config, url)
  // In this process: every table is small.
  const operations = [tableMaintenance(catalogs, { isolation: 'none' })]
  const engine = await openEngine({ database: url, operations, migrations: [maintenanceMigrations] })
  try {
    return await demonstrate({ engine, catalogs, folder: lake, scale, signal, watcher: new DemoView(output) })
  } finally {
    await engine.close()
    await catalogs.close()
  }
}

function jsonOf({ tables, isHealthy, failures }: DemoResult, seconds: number): unknown {
  const briefly = ({ health, proof }: DemoResult['tables'][number]['before']) => ({
    score: health.score,
    scan_seconds: health.scanSeconds,
    data_files: health.facts.dataFiles.files,
    delete_files: health.facts.deleteFiles.files,
    manifests: health.facts.manifests.count,
    snapshots: health.facts.snapshots.count,
    wasted_bytes: health.wastedBytes.total,
    rows: proof.rows,
    checksum: proof.checksum,
  })
  return {
    is_healthy: isHealthy,
    failures,
    seconds,
    tables: tables.map(({ before, after }) => ({
      table: before.table,
      before: briefly(before),
      after: briefly(after),
    })),
  }
}
