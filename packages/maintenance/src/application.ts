import type { Engine, Logger } from '@fencepost/engine'
import { ApiError, type Application, type JobFilter, type JobJson } from '@fencepost/server'
import { z } from 'zod'
import { databaseText, lockKeyOf, parseTable } from './catalogs/address.ts'
import type { Catalogs } from './catalogs/catalogs.ts'
import { Refresher } from './inventory/refresher.ts'
import { operationName, type MaintenancePayload } from './operation/payload.ts'
import { maintenanceMigrations } from './relations.ts'
import { healthEndpoints } from './routes/health.ts'
import { maintainEndpoints } from './routes/maintain.ts'
import { tableEndpoints } from './routes/tables.ts'

export interface MaintenanceOptions {
  /** How often the catalogs are listed. */
  readonly refreshMs?: number
  readonly logger?: Logger
}

const defaultRefreshMs = 300_000
const silentLogger: Logger = { info() {}, warn() {}, error() {} }

/** Table maintenance as an application of the server. The engine must have the operation tableMaintenance(). */
export function maintenance(catalogs: Catalogs, options: MaintenanceOptions = {}): Application {
  const { refreshMs = defaultRefreshMs, logger = silentLogger } = options
  return {
    name: 'maintenance',
    migrations: [maintenanceMigrations],
    endpoints: (engine: Engine, present) => [
      ...maintainEndpoints(engine, catalogs, present),
      ...tableEndpoints(engine, catalogs, logger),
      ...healthEndpoints(engine, catalogs),
    ],
    presentJob: (json, job) =>
      job.operation === operationName ? present(json, job.payload, catalogs.defaultName) : json,
    payloadInListsOf: [operationName],
    jobFilters: { table: tableFilter(catalogs.defaultName) },
    start: (engine) => new Refresher(engine, catalogs, { everyMs: refreshMs, logger }),
  }
}

/** The fields of a maintenance job come first. Its payload stays where it was, since clients of any job expect one. */
function present(json: JobJson, payload: unknown, defaultCatalog: string): JobJson {
  const { job_id: jobId, ...rest } = json
  const { catalog, database, table, actions, options } = payload as MaintenancePayload
  return {
    job_id: jobId,
    catalog,
    database: databaseText({ catalog, database }, defaultCatalog),
    table_name: table,
    actions,
    ...(options === undefined ? {} : { options }),
    dry_run: false,
    ...rest,
  }
}

function tableFilter(defaultCatalog: string): JobFilter {
  return {
    schema: z.string().min(1).max(1000),
    description: 'Only jobs of this table: database.table, after catalog: in another catalog than the default one.',
    apply: (text) => {
      const address = parseTable(text, defaultCatalog)
      if (address !== undefined) return { lockKey: lockKeyOf(address) }
      throw new ApiError('request_invalid', 'The request is not valid: query.table: give database.table.', {
        details: { issues: [{ path: 'query.table', message: 'give database.table' }] },
      })
    },
  }
}
