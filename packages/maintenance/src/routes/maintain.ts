import { randomBytes } from 'node:crypto'
import { tableRoutes, type MaintenanceJob, type PlannedAction } from '@fencepost/client'
import type { Engine } from '@fencepost/engine'
import { IcebergError } from '@fencepost/iceberg'
import { acceptedHeaders, acceptedJobId, ApiError, endpoint, type Endpoint, type Presenter } from '@fencepost/server'
import { databaseText, type TableAddress } from '../catalogs/address.ts'
import type { Catalogs } from '../catalogs/catalogs.ts'
import {
  actionNames,
  actionOptions,
  inOrder,
  type ActionName,
  type ActionOptions,
} from '../operation/action-options.ts'
import { actions, type Where } from '../operation/actions.ts'
import { operationName } from '../operation/payload.ts'
import { refusedPlan } from '../operation/planned.ts'
import { findTable, onTable } from './find-table.ts'

/** Submitting maintenance, and planning it. */
export function maintainEndpoints(engine: Engine, catalogs: Catalogs, present: Presenter): readonly Endpoint[] {
  return [
    endpoint(tableRoutes.maintainTable, async ({ params, body, caller }) => {
      const address = await findTable(engine, catalogs, params)
      const wanted = inOrder(body.actions)
      const options = checkOptions(body.options, wanted)
      if (body.dry_run) {
        const plan = await planActions(catalogs, address, wanted, options)
        return { body: dryRun(address, catalogs.defaultName, wanted, plan) }
      }
      const payload = { ...address, actions: wanted, ...(body.options === undefined ? {} : { options }) }
      const jobId = acceptedJobId(await engine.submit(operationName, payload, { by: caller.name }))
      const job = await engine.get(jobId)
      if (job === undefined) throw new Error(`job ${jobId} was submitted and is not there`)
      return { body: present.accepted(job) as MaintenanceJob, headers: acceptedHeaders(jobId) }
    }),
    endpoint(tableRoutes.planTable, async ({ params }) => {
      const address = await findTable(engine, catalogs, params)
      const plan = await planActions(catalogs, address, actionNames, {})
      return { body: { database: databaseText(address, catalogs.defaultName), table_name: address.table, plan } }
    }),
  ]
}

/** Plans each action on the table as it is: what one would do to what another leaves is not known before it has run. */
async function planActions(
  catalogs: Catalogs,
  address: TableAddress,
  wanted: readonly ActionName[],
  options: ActionOptions,
): Promise<PlannedAction[]> {
  return onTable(catalogs, address, async (table, catalog) => {
    const plan: PlannedAction[] = []
    for (const action of wanted) plan.push(await planAction(action, { catalog, table, options }))
    return plan
  })
}

/** An action that is refused on this table says so in its own plan, and spoils no other's. */
async function planAction(action: ActionName, where: Where): Promise<PlannedAction> {
  try {
    return await actions[action].plan(where)
  } catch (error) {
    if (!(error instanceof IcebergError) || error.code !== 'action_refused') throw error
    return refusedPlan(action, error.message)
  }
}

function checkOptions(given: unknown, wanted: readonly ActionName[]): ActionOptions {
  const parsed = actionOptions.safeParse(given ?? {})
  if (!parsed.success) {
    const issues = parsed.error.issues.slice(0, 20).map((issue) => ({
      path: ['body.options', ...issue.path.map(String)].join('.'),
      message: issue.message,
    }))
    const [first] = issues
    throw new ApiError('request_invalid', `The request is not valid: ${first?.path}: ${first?.message}.`, {
      details: { issues },
    })
  }
  const unasked = Object.keys(parsed.data).find((action) => !wanted.includes(action as ActionName))
  if (unasked !== undefined) {
    const path = `body.options.${unasked}`
    const message = 'is for an action that is not among the actions'
    throw new ApiError('request_invalid', `The request is not valid: ${path}: ${message}.`, {
      details: { issues: [{ path, message }] },
    })
  }
  return parsed.data
}

/** A dry run is answered as a job that has completed; it is in no queue and cannot be read again. */
function dryRun(
  address: TableAddress,
  defaultCatalog: string,
  wanted: ActionName[],
  plan: PlannedAction[],
): MaintenanceJob {
  const now = new Date().toISOString().replace('Z', '000Z')
  return {
    job_id: randomBytes(16).toString('hex'),
    catalog: address.catalog,
    database: databaseText(address, defaultCatalog),
    table_name: address.table,
    actions: wanted,
    dry_run: true,
    status: 'completed',
    submitted_at: now,
    started_at: now,
    completed_at: now,
    results: plan.map(({ action, refused, message }) => ({
      action,
      success: refused === null,
      message,
      error: refused,
      elapsed_seconds: 0,
    })),
    error: null,
    operation: operationName,
    attempts: 0,
    max_attempts: 0,
    progress: null,
    parent_job_id: null,
    pipeline_id: null,
    plan,
  }
}
