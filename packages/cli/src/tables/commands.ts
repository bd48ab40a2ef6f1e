import { tableRoutes, type ListedTable, type MaintenanceRequest, type PlannedAction } from '@fencepost/client'
import { command } from '../command/command.ts'
import { clientSettings, connect } from '../connection.ts'
import { exitOf } from '../jobs/commands.ts'
import { readPayload } from '../jobs/payload.ts'
import { watchJob } from '../jobs/watch.ts'
import { plain } from '../output/plain.ts'
import { facts, table } from '../output/table.ts'
import { pathOf } from './address.ts'

const tableArgument = { description: 'The table: database.table, or catalog:database.table.' }
const everyAction = [
  'rewrite_data_files',
  'rewrite_position_delete_files',
  'rewrite_manifests',
  'expire_snapshots',
  'remove_orphan_files',
] as const

export const listTables = command({
  name: 'tables list',
  summary: 'Lists the tables of the inventory, with their health and last job',
  options: {
    database: { kind: 'text', placeholder: 'name', description: 'Only tables of this database.' },
    search: { kind: 'text', placeholder: 'text', description: 'Only tables whose name contains this.' },
    limit: {
      kind: 'integer',
      placeholder: 'number',
      description: 'At most so many; 100 if left out.',
      min: 1,
      max: 1000,
    },
  },
  settings: clientSettings,
  async run({ options, settings, output }) {
    const { database, search, limit } = options
    const found = await connect(settings).call(tableRoutes.listTables, { query: { database, search, limit } })
    output.answer(found, () => (found.length === 0 ? 'No tables.' : table(tableHead, found.map(rowOf))))
  },
})

const tableHead = ['TABLE', 'SCORE', 'NEEDS', 'LAST JOB', 'LOCKED BY']

function rowOf(one: ListedTable): string[] {
  const { score, recommended_actions: needs = [] } = (one.health ?? {}) as {
    score?: number | null
    recommended_actions?: string[]
  }
  return [
    plain(`${one.database}.${one.table_name}${one.stale ? ' (stale)' : ''}`),
    score === undefined || score === null ? '' : String(score),
    needs.join(', '),
    one.last_job?.status ?? '',
    one.locked_by ?? '',
  ]
}

export const showHealth = command({
  name: 'tables health',
  summary: 'Looks at a table: score, issues and recommended actions',
  arguments: { table: tableArgument },
  options: { cached: { kind: 'boolean', description: 'What the last look found, instead of looking.' } },
  settings: clientSettings,
  async run({ args, options, settings, output }) {
    const params = pathOf(args.table, 'tables health')
    const route = options.cached ? tableRoutes.cachedTableHealth : tableRoutes.tableHealth
    const health = (await connect(settings).call(route, { params })) as HealthAnswer
    output.answer(health, () => describeHealth(args.table, health))
  },
})

interface HealthAnswer extends Record<string, unknown> {
  score: number
  band: string
  looked_at: string
  issues: { code: string; severity: string; message: string }[]
  recommended_actions: { action: string; reason?: string }[]
}

function describeHealth(
  name: string,
  { score, band, looked_at: at, issues, recommended_actions: needs }: HealthAnswer,
) {
  const head = facts([
    ['Table', plain(name)],
    ['Score', `${score} of 100, ${band}`],
    ['Looked at', at],
  ])
  const told = issues.map(({ severity, code, message }) => [severity, code, plain(message)])
  const wanted = needs.map(({ action, reason }) => [action, plain(reason ?? '')])
  return [
    head,
    ...(told.length === 0 ? [] : ['', table(['SEVERITY', 'ISSUE', 'WHAT IT IS'], told)]),
    ...(wanted.length === 0 ? ['', 'It needs nothing.'] : ['', table(['RECOMMENDED', 'WHY'], wanted)]),
  ].join('\n')
}

export const planTable = command({
  name: 'tables plan',
  summary: 'Says what each action would do to a table',
  arguments: { table: tableArgument },
  settings: clientSettings,
  async run({ args, settings, output }) {
    const params = pathOf(args.table, 'tables plan')
    const answer = await connect(settings).call(tableRoutes.planTable, { params })
    output.answer(answer, () => describePlan(answer.plan))
  },
})

function describePlan(plan: readonly PlannedAction[]): string {
  return table(
    ['ACTION', 'FILES', 'BYTES', 'SNAPSHOTS', 'WHAT IT WOULD DO'],
    plan.map((one) => [one.action, String(one.files), String(one.bytes), String(one.snapshots), plain(one.message)]),
  )
}

export const maintainTable = command({
  name: 'tables maintain',
  summary: 'Submits a job that maintains a table',
  arguments: { table: tableArgument },
  options: {
    actions: { kind: 'list', placeholder: 'names', description: 'The actions; all five if left out.' },
    options: {
      kind: 'text',
      placeholder: 'json',
      description: 'Options by action as JSON; @path reads a file, - reads standard input.',
    },
    dryRun: { kind: 'boolean', description: 'Only say what each action would do.' },
    wait: { kind: 'boolean', description: 'Follow it to its end, as jobs show --watch does.' },
  },
  settings: clientSettings,
  async run({ args, options, settings, output }) {
    const client = connect(settings)
    const body = {
      actions: options.actions === undefined ? [...everyAction] : [...options.actions],
      dry_run: options.dryRun,
      ...(options.options === undefined ? {} : { options: readPayload(options.options, 'tables maintain') }),
      // What the server does not take it refuses, and names.
    } as MaintenanceRequest
    const params = pathOf(args.table, 'tables maintain')
    const job = await client.call(tableRoutes.maintainTable, { params, body })
    if (options.dryRun) {
      output.answer(job, () => describePlan(job.plan ?? []))
      return 'ok'
    }
    if (options.wait && !output.json) output.draw(`Job ${job.job_id} is submitted.\n`)
    if (options.wait) return exitOf(await watchJob(client, job.job_id, output))
    output.answer(job, () => `Job ${job.job_id} is submitted.`)
    return 'ok'
  },
})
