import type { Engine, Logger } from '@fencepost/engine'
import { makeSampleLake, refreshInventory } from '@fencepost/maintenance'
import type { Output } from '../output/output.ts'
import { sampleCatalog, type Maintenance } from './maintenance.ts'

interface MakeLakeOptions {
  readonly folder: string
  readonly output: Output
  readonly logger: Logger
  readonly signal: AbortSignal
}

/** Makes the sample lake beside what is running, and says how far it is. What goes wrong is logged and stops nothing. */
export async function makeLake(
  engine: Engine,
  { catalogs }: Maintenance,
  { folder, output, logger, signal }: MakeLakeOptions,
): Promise<void> {
  try {
    const { catalog } = await catalogs.open(sampleCatalog)
    const told = new Set<string>()
    const lake = await makeSampleLake(catalog, folder, {
      signal,
      onProgress: (progress) => {
        if (!told.has(progress.table)) output.note(`Making the sample lake: ${progress.table}, ${progress.story}`)
        told.add(progress.table)
      },
    })
    await refreshInventory(engine.database, catalogs, { acceptsEmpty: false, unlessWithinMs: 0, logger })
    if (lake.made) output.note(`The sample lake is ready: ${lake.tables.length} tables. GET /tables lists them.`)
  } catch (error) {
    if (!signal.aborted) logger.error({ err: error }, 'sample_lake_not_made')
  }
}
