import type { Mutant } from './mutant.ts'

const lifecycle = 'packages/engine/src/lifecycle'
const basics = 'packages/engine/test/lifecycle.test.ts'
const race = (name: string) => `packages/engine/test/races/${name}.test.ts`

export const mutants: readonly Mutant[] = [
  {
    name: 'a sweep that does not look at the lease',
    file: `${lifecycle}/expire.ts`,
    find: "where status = 'running' and lease_until <= ${t.now}",
    replace: "where status = 'running' and deferred_at is null",
    tests: [race('expire-against-worker')],
  },
  {
    name: 'a sweep that does not hold what it has read',
    file: `${lifecycle}/expire.ts`,
    find: 'order by lease_until limit ${batch}\n         for update skip locked',
    replace: 'order by lease_until limit ${batch}',
    tests: [race('expire-against-worker')],
  },
  {
    name: 'a sweep that frees the lock of a cancelled job still at work',
    file: `${lifecycle}/sweep.ts`,
    find: '(expires_at is null or expires_at <= ${t.now})\n             and not exists',
    replace: 'not exists',
    tests: [race('lapsed-lock')],
  },
  {
    name: 'a sweep that frees the lock of a job that lives',
    file: `${lifecycle}/sweep.ts`,
    find: 'where job.job_id = held.job_id)',
    replace: 'where false)',
    tests: [basics],
  },
  {
    name: 'a sweep that is one transaction, with its lock held between its statements',
    file: 'packages/engine/src/engine.ts',
    find: 'await sweep(this.#db, { unlessWithinMs })',
    replace: "await this.#context.database.transaction('sweep', (db) => sweep(db, { unlessWithinMs }))",
    tests: [race('expire-against-worker')],
  },
  {
    name: 'sessions without limits that Postgres keeps',
    file: 'packages/engine/src/database/database.ts',
    find: 'await limitSession(client, this.#limits, this.#setUpMs)',
    replace: '',
    tests: [race('vanished-host')],
  },
  {
    name: 'transactions through a pooler without limits',
    file: 'packages/engine/src/database/database.ts',
    find: ': beginLimited(options)',
    replace: ": 'begin'",
    tests: [race('vanished-host')],
  },
  {
    name: 'a sweep that follows a fresh one',
    file: `${lifecycle}/sweep.ts`,
    find: 'mine and not exists (${fresh})',
    replace: 'mine or not exists (${fresh})',
    tests: [race('expire-against-worker')],
  },
  {
    name: 'a sweep that never spends an attempt',
    file: `${lifecycle}/expire.ts`,
    find: 'requeueEnded(db, { runAfter: t.now, attempts: sql`attempts` })',
    replace: 'requeueEnded(db, { runAfter: t.now, attempts: sql`attempts - 1` })',
    tests: [basics],
  },
]
