import { z } from 'zod'
import { job } from './job.ts'
import { nextAfter, type Route } from './route.ts'
import { count, id, queryInteger, timestamp } from './values.ts'

/*
 * The routes of the maintenance application. A database is the levels of a namespace with dots between them; in another
 * catalog than the default one, `catalog:` comes first.
 */

export const maintenanceAction = z.enum([
  'rewrite_data_files',
  'rewrite_position_delete_files',
  'rewrite_manifests',
  'expire_snapshots',
  'remove_orphan_files',
])
export type MaintenanceAction = z.output<typeof maintenanceAction>

const tablePath = z.object({ database: z.string(), table: z.string() })

export const plannedAction = z.object({
  action: maintenanceAction,
  needed: z.boolean(),
  message: z.string(),
  files: count,
  bytes: count,
  snapshots: count,
  groups: count,
  refused: z.string().nullable().describe('Why the action cannot be done on this table.'),
})
export type PlannedAction = z.output<typeof plannedAction>

const jobFields = job.pick({
  job_id: true,
  status: true,
  submitted_at: true,
  started_at: true,
  completed_at: true,
  results: true,
  error: true,
  operation: true,
  attempts: true,
  max_attempts: true,
  progress: true,
  parent_job_id: true,
  pipeline_id: true,
})

/** A job that maintains a table. Loose: it has the other fields of jobs too, unless it is a dry run. */
export const maintenanceJob = z.looseObject({
  ...jobFields.shape,
  catalog: z.string(),
  database: z.string(),
  table_name: z.string(),
  actions: z.array(maintenanceAction),
  dry_run: z.boolean(),
  plan: z.array(plannedAction).optional().describe('Of a dry run: what each action would do.'),
})
export type MaintenanceJob = z.output<typeof maintenanceJob>

/** What maintenance is asked for with. */
export const maintenanceRequest = z.strictObject({
  actions: z.array(maintenanceAction).min(1).max(50).describe('Run in their fixed order, each once.'),
  dry_run: z.boolean().default(false).describe('Plan, and change nothing.'),
  options: z.partialRecord(maintenanceAction, z.record(z.string(), z.unknown())).optional().describe('By action.'),
})
export type MaintenanceRequest = z.input<typeof maintenanceRequest>

export const listedTable = z.looseObject({
  catalog: z.string(),
  database: z.string(),
  table_name: z.string(),
  stale: z.boolean().describe('Its catalog could not be listed the last time.'),
  health: z.unknown().describe('What the last look at it found; null before the first.'),
  health_at: timestamp.nullable(),
  last_job: z.object({ job_id: id, status: z.string(), submitted_at: timestamp }).nullable(),
  locked_by: id.nullable().describe('The job that holds the lock of the table.'),
})
export type ListedTable = z.output<typeof listedTable>

export const catalogState = z.object({
  catalog: z.string(),
  type: z.string(),
  is_default: z.boolean(),
  refreshed_at: timestamp.nullable(),
  error: z.string().nullable(),
})
export type CatalogState = z.output<typeof catalogState>

const tableErrors = ['table_not_found', 'table_name_invalid', 'catalog_unavailable'] as const

/** The table of the application's routes. */
export const tableRoutes = {
  maintainTable: {
    method: 'POST',
    path: '/tables/{database}/{table}/maintenance',
    summary: 'Submits a job that maintains the table, or plans one',
    tag: 'tables',
    role: 'operator',
    params: tablePath,
    body: maintenanceRequest,
    status: 202,
    answer: maintenanceJob,
    answerHeaders: { Location: 'Where the job is; not for dry runs.', 'Retry-After': '30; not for dry runs.' },
    errors: [...tableErrors, 'lock_held', 'drained'],
  },
  listTables: {
    method: 'GET',
    path: '/tables',
    summary: 'Lists the tables of the inventory',
    tag: 'tables',
    role: 'viewer',
    query: z.strictObject({
      database: z.string().max(1000).optional(),
      catalog: z.string().max(255).optional(),
      search: z.string().min(1).max(255).optional().describe('Only tables whose name contains this.'),
      limit: queryInteger(1, 1000).optional().describe('At most so many; 100 if left out.'),
      after: z.string().max(2000).optional().describe('The Next-After of the page before.'),
    }),
    status: 200,
    answer: z.array(listedTable),
    answerHeaders: nextAfter,
    errors: ['table_name_invalid'],
  },
  tableHealth: {
    method: 'GET',
    path: '/tables/{database}/{table}/health',
    summary: 'Looks at the table now: facts, score, issues and recommended actions',
    tag: 'tables',
    role: 'viewer',
    params: tablePath,
    status: 200,
    answer: z.looseObject({}),
    errors: tableErrors,
  },
  cachedTableHealth: {
    method: 'GET',
    path: '/tables/{database}/{table}/health/cached',
    summary: 'What the last look at the table found',
    tag: 'tables',
    role: 'viewer',
    params: tablePath,
    status: 200,
    answer: z.looseObject({}),
    errors: tableErrors,
  },
  planTable: {
    method: 'GET',
    path: '/tables/{database}/{table}/plan',
    summary: 'What each action would do to the table',
    tag: 'tables',
    role: 'viewer',
    params: tablePath,
    status: 200,
    answer: z.object({ database: z.string(), table_name: z.string(), plan: z.array(plannedAction) }),
    errors: tableErrors,
  },
  listCatalogs: {
    method: 'GET',
    path: '/catalogs',
    summary: 'Lists the catalogs, and when their tables were last listed',
    tag: 'tables',
    role: 'viewer',
    status: 200,
    answer: z.array(catalogState),
    errors: [],
  },
  refreshCatalogs: {
    method: 'POST',
    path: '/catalogs/refresh',
    summary: 'Lists the tables of every catalog again, now',
    tag: 'tables',
    role: 'operator',
    status: 200,
    answer: z.array(catalogState),
    errors: [],
  },
} as const satisfies Record<string, Route>
