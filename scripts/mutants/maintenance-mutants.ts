import type { Mutant } from './mutant.ts'

const src = 'packages/maintenance/src'
const stale = 'packages/maintenance/test/stale-worker.test.ts'
const maintain = 'packages/maintenance/test/maintain.test.ts'
const inventory = 'packages/maintenance/test/inventory.test.ts'

export const mutants: readonly Mutant[] = [
  {
    name: 'a commit beside the jobs that does not hold the fence',
    file: `${src}/operation/fence.ts`,
    find: 'if (!(await attempt.holdFence(transaction)).held) throw fenceLost(attempt)',
    replace: 'await attempt.holdFence(transaction)',
    tests: [stale],
  },
  {
    name: 'a commit elsewhere that does not look at the fence',
    file: `${src}/operation/fence.ts`,
    find: 'if (!(await attempt.checkFence()).held) throw fenceLost(attempt)',
    replace: 'await attempt.checkFence()',
    tests: [stale],
  },
  {
    name: 'an attempt that repeats actions that are done',
    file: `${src}/operation/run-maintenance.ts`,
    find: '    if (finished.has(action)) continue\n',
    replace: '',
    tests: [stale],
  },
  {
    name: 'actions in the order of the request',
    file: `${src}/operation/action-options.ts`,
    find: 'return actionNames.filter((name) => actions.includes(name))',
    replace: 'return [...new Set(actions)]',
    tests: [maintain],
  },
  {
    name: 'snapshots without the job that made them',
    file: `${src}/operation/fence.ts`,
    find: "summary: { 'fencepost.job-id': attempt.jobId, 'fencepost.attempt-id': attempt.attemptId }",
    replace: 'summary: {}',
    tests: [maintain],
  },
  {
    name: 'a table that is not in the inventory',
    file: `${src}/routes/find-table.ts`,
    find: ' || !(await isListed(engine.database, address))',
    replace: '',
    tests: [maintain],
  },
  {
    name: 'dropped tables that stay in the inventory',
    file: `${src}/inventory/inventory.ts`,
    find: 'sql`delete from ${t.tables} kept where catalog = ${catalog}\n',
    replace: 'sql`delete from ${t.tables} kept where false and catalog = ${catalog}\n',
    tests: [inventory],
  },
  {
    name: 'a catalog that is down and not marked',
    file: `${src}/inventory/inventory.ts`,
    find: 'set error = ${error}, refreshing_until = null',
    replace: 'set error = null, refreshing_until = null',
    tests: [inventory],
  },
  {
    name: 'a catalog that is listed again at once',
    file: `${src}/inventory/inventory.ts`,
    find: "and coalesce(kept.tried_at <= ${t.now} - ${unlessWithinMs} * interval '1 millisecond', true)",
    replace: "and ${unlessWithinMs} * interval '1 millisecond' is not null",
    tests: [inventory],
  },
]
