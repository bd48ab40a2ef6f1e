// @ts-check
import { readFileSync } from 'node:fs'

/*
 * The systems, and how their tables are read. Reading is the one thing that goes past the public API: whether a
 * settlement has committed is only known in the database.
 *
 *   left      unfinished jobs, as a number
 *   anyLeft   whether there is one; asked at a fine interval at the end of a drain
 *   attempts  one row per unfinished or finished job, with what identifies the attempt that it belongs to: when such a
 *             row changes while its owner has done nothing, somebody else's write was accepted
 *   scale     the part of a big workload that a slow system is given; what is compared is always a rate
 */

/**
 * @typedef {object} System
 * @property {string} name
 * @property {string} label
 * @property {string} version
 * @property {number} scale
 * @property {boolean} keepsFinished
 * @property {string} left
 * @property {string} anyLeft
 * @property {boolean} [takesBatches] its handlers get batches, which fail as a whole
 * @property {string} attempts
 * @property {{ enqueueInTransaction: boolean, fanOut: boolean, chain: boolean, comeBack: boolean }} can
 * @property {Record<string, unknown>} defaultLease options of its adapter for leases and sweeps as it ships them
 * @property {Record<string, unknown>} shortLease options of its adapter for leases of a few seconds
 * @property {Record<string, unknown>} [flow] options of its adapter for jobs that depend on others
 * @property {string} adapter the file of adapters/
 * @property {Record<string, unknown>} [options] options of its adapter in every cell
 * @property {string[]} [takesPartIn] the only workloads it is there for
 * @property {string} [variantOf] it is another system with other options: shown in rows of that system's, and no peer
 * @property {string} [refused] how many jobs have a late report of an earlier attempt refused; where that is kept
 * @property {string} [deadWorkers] where no lease can be set: the workers that an operator takes for dead
 */

/** @type {System} */
const fencepost = {
  name: 'fencepost',
  adapter: 'fencepost',
  label: 'Fencepost',
  version: versionIn('../../packages/engine/package.json'),
  scale: 1,
  keepsFinished: true,
  left: 'select count(*)::integer as left from fencepost.live_jobs',
  anyLeft: 'select exists (select from fencepost.live_jobs) as any_left',
  attempts: `select job_id::text as id, concat_ws(' ', status, attempt_id, attempts) as attempt from fencepost.jobs`,
  refused: `select count(distinct job_id)::integer as refused
              from fencepost.job_events event join fencepost.jobs job using (job_id)
             where event.event = 'job.fence_rejected' and event.fields ->> 'verb' = 'complete'
               and event.attempt_id <> job.attempt_id`,
  can: { enqueueInTransaction: true, fanOut: true, chain: true, comeBack: true },
  defaultLease: {},
  shortLease: { leaseMs: 2000, sweepMs: 500 },
}

/** @type {System[]} */
export const systems = [
  fencepost,
  {
    ...fencepost,
    name: 'fencepost-durable',
    options: { durableClaims: true },
    takesPartIn: ['drain', 'latency'],
    variantOf: 'fencepost',
  },
  {
    name: 'graphile-worker',
    adapter: 'graphile-worker',
    label: 'graphile-worker',
    version: versionIn('../node_modules/graphile-worker/package.json'),
    scale: 1,
    keepsFinished: false,
    left: 'select count(*)::integer as left from graphile_worker._private_jobs',
    // A job that has failed for good stays, with its attempts spent.
    anyLeft: `select exists (select from graphile_worker._private_jobs
                              where attempts < max_attempts or locked_at is not null) as any_left`,
    attempts: `select id::text, concat_ws(' ', locked_by, locked_at, attempts) as attempt
                 from graphile_worker._private_jobs`,
    can: { enqueueInTransaction: true, fanOut: false, chain: false, comeBack: false },
    defaultLease: {},
    shortLease: {},
    deadWorkers: 'select distinct locked_by as worker from graphile_worker._private_jobs where locked_by is not null',
  },
  {
    name: 'pg-boss',
    adapter: 'pg-boss',
    label: 'pg-boss',
    version: versionIn('../node_modules/pg-boss/package.json'),
    scale: 1,
    keepsFinished: true,
    left: `select count(*)::integer as left from pgboss.job where name = 'bench' and state < 'completed'`,
    anyLeft: `select exists (select from pgboss.job where name = 'bench' and state < 'completed') as any_left`,
    attempts: `select id::text, concat_ws(' ', state, retry_count, started_on, output) as attempt
                 from pgboss.job where name = 'bench'`,
    takesBatches: true,
    can: { enqueueInTransaction: true, fanOut: true, chain: false, comeBack: false },
    defaultLease: { supervise: true },
    flow: { supervise: true, flowSeconds: 1 },
    shortLease: { supervise: true, superviseSeconds: 1, heartbeatSeconds: 10 },
  },
  {
    name: 'bullmq',
    adapter: 'bullmq',
    label: 'BullMQ (Postgres)',
    version: versionIn('../node_modules/bullmq/package.json'),
    scale: 0.1,
    keepsFinished: false,
    left: `select count(*)::integer as left from bullmq.job where state not in ('completed', 'failed')`,
    anyLeft: `select exists (select from bullmq.job where state not in ('completed', 'failed')) as any_left`,
    attempts: `select id, concat_ws(' ', state, lock_token, attempts_started) as attempt from bullmq.job`,
    can: { enqueueInTransaction: false, fanOut: true, chain: false, comeBack: true },
    defaultLease: {},
    shortLease: { lockDuration: 2000, stalledInterval: 500 },
  },
]

function versionIn(path) {
  return JSON.parse(readFileSync(new URL(path, import.meta.url), 'utf8')).version
}
