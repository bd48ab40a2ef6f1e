/** A way to break the engine, and the tests that must notice. */
export interface Mutant {
  name: string
  file: string
  find: string | RegExp
  replace: string
  tests: readonly string[]
}

const lifecycle = 'packages/engine/src/lifecycle'
const attempt = 'packages/engine/src/attempt'
const isolated = 'packages/engine/src/worker/isolated'
const signals = 'packages/engine/test/worker/signals.test.ts'
const basics = 'packages/engine/test/lifecycle.test.ts'
const race = (name: string) => `packages/engine/test/races/${name}.test.ts`

export const mutants: readonly Mutant[] = [
  {
    name: 'complete without the fence',
    file: `${lifecycle}/complete.ts`,
    find: 'and attempt_id = any(${completions.map(({ attemptId }) => attemptId)}::uuid[])',
    replace: '',
    tests: [race('stale-attempt')],
  },
  {
    name: 'fail, retry, release and defer without the fence',
    file: `${lifecycle}/finish.ts`,
    find: 'and attempt_id = any(${fences.map(({ attemptId }) => attemptId)}::uuid[])',
    replace: '',
    tests: [race('stale-attempt')],
  },
  {
    name: 'renew without the fence',
    file: `${lifecycle}/renew.ts`,
    find: 'sql`job_id = any(${jobIds}::uuid[]) and attempt_id = any(${attemptIds}::uuid[])`',
    replace: 'sql`job_id = any(${jobIds}::uuid[])`',
    tests: [race('stale-attempt')],
  },
  {
    name: 'progress and events without the fence',
    file: `${attempt}/emit.ts`,
    find: 'and attempt_id = ${fence.attemptId}',
    replace: '',
    tests: [race('stale-attempt')],
  },
  {
    name: 'step results without the fence',
    file: `${attempt}/step.ts`,
    find: 'and attempt_id = ${fence.attemptId} and status',
    replace: 'and status',
    tests: [race('stale-attempt')],
  },
  {
    name: 'user transactions without the fence',
    file: `${attempt}/transaction.ts`,
    find: 'and attempt_id = ${fence.attemptId}',
    replace: '',
    tests: [race('stale-attempt')],
  },
  {
    name: 'user transactions that do not keep the fence until they commit',
    file: `${attempt}/transaction.ts`,
    find: 'for key share`',
    replace: '`',
    tests: [race('attempt-transaction')],
  },
  {
    name: 'a fence that is the same for every claim of a job',
    file: `${lifecycle}/claim.ts`,
    find: 'attempt_id = gen_random_uuid()',
    replace: 'attempt_id = md5(job_id::text)::uuid',
    tests: ['packages/engine/src/lifecycle/claim.test.ts'],
  },
  {
    name: 'a claim that does not look whether the slot is busy',
    file: `${lifecycle}/claim.ts`,
    find: "not exists (select from ${t.liveJobs} other where other.slot_key = job.slot_key and other.status = 'running')",
    replace: 'true',
    tests: ['packages/engine/src/lifecycle/claim.test.ts'],
  },
  {
    name: 'a claim that enters the slot of a cancelled job still at work',
    file: `${lifecycle}/claim.ts`,
    find: /(where slot\.held_until is null or slot\.held_until <= \$\{t\.now\})|(and not exists \(select from \$\{t\.slots\} slot[^\n]*held_until > \$\{t\.now\}\))/g,
    replace: '',
    tests: [race('one-slot')],
  },
  {
    name: 'a claim of what is not due',
    file: `${lifecycle}/claim.ts`,
    find: 'and job.run_after <= ${t.now}',
    replace: '',
    tests: [basics, 'packages/engine/src/lifecycle/claim.test.ts'],
  },
  {
    name: 'a claim while claims are drained',
    file: `${lifecycle}/claim.ts`,
    find: "sql`not exists (select from ${t.settings} where key = 'drain' and value = 'all')`",
    replace: 'sql`true`',
    tests: [basics],
  },
  {
    name: 'a claim that does not make the lock its own',
    file: `${lifecycle}/claim.ts`,
    find: 'where held.lock_key = claimed.lock_key and held.job_id = claimed.job_id',
    replace: 'where false',
    tests: [basics],
  },
  {
    name: 'a claim beside an earlier attempt that may still be at work',
    file: `${lifecycle}/claim.ts`,
    find: '(job.lock_key is null or not exists (',
    replace: '(true or not exists (',
    tests: [race('recover-against-worker')],
  },
  {
    name: 'a lock freed by job id alone',
    file: `${lifecycle}/release.ts`,
    find: 'and job_id = ${held.jobId} and attempt_id = ${held.attemptId}`',
    replace: 'and job_id = ${held.jobId}`',
    tests: [race('stale-attempt')],
  },
  {
    name: 'a slot left by its key alone',
    file: `${lifecycle}/release.ts`,
    find: 'where slot_key = ${held.slotKey ?? null} and attempt_id = ${held.attemptId}`',
    replace: 'where slot_key = ${held.slotKey ?? null}`',
    tests: [race('stale-attempt')],
  },
  {
    name: 'a cancel that frees the lock of a running job',
    file: `${lifecycle}/cancel.ts`,
    find: 'and attempt_id is null',
    replace: '',
    tests: [basics],
  },
  {
    name: 'a cancel that misses children being made',
    file: `${lifecycle}/cancel.ts`,
    find: 'where parent_job_id = any(${parents}::uuid[])`',
    replace: 'where false and parent_job_id = any(${parents}::uuid[])`',
    tests: [race('cancel-against-children')],
  },
  {
    name: 'a cancelled job that can still complete',
    file: `${lifecycle}/finish.ts`,
    find: 'delete from ${t.liveJobs} where job_id = any(array(select job_id from ended))',
    replace: "delete from ${t.liveJobs} where job_id = any(array(select job_id from ended)) and status = 'pending'",
    tests: [basics],
  },
  {
    name: 'a sweep that does not look at the lease',
    file: `${lifecycle}/expire.ts`,
    find: "where status = 'running' and lease_until <= ${t.now}",
    replace: "where status = 'running' and deferred_at is null",
    tests: [basics],
  },
  {
    name: 'a sweep that does not hold what it has read',
    file: `${lifecycle}/expire.ts`,
    find: 'order by job_id limit ${batch}\n         for update skip locked',
    replace: 'order by job_id limit ${batch}',
    tests: [race('expire-against-worker')],
  },
  {
    name: 'a sweep that frees the lock of a cancelled job still at work',
    file: `${lifecycle}/expire.ts`,
    find: 'where (expires_at is null or expires_at <= ${t.now})\n           and not exists',
    replace: 'where not exists',
    tests: [race('lapsed-lock')],
  },
  {
    name: 'a sweep that frees the lock of a job that lives',
    file: `${lifecycle}/expire.ts`,
    find: 'where job.job_id = held.job_id)',
    replace: 'where false)',
    tests: [basics],
  },
  {
    name: 'a sweep that never spends an attempt',
    file: `${lifecycle}/expire.ts`,
    find: 'requeueEnded(db, { runAfter: t.now, attempts: sql`attempts` })',
    replace: 'requeueEnded(db, { runAfter: t.now, attempts: sql`attempts - 1` })',
    tests: [basics],
  },
  {
    name: 'a renewal that forgets the lock',
    file: `${lifecycle}/renew.ts`,
    find: 'where lock_key = any(${held.flatMap(({ lockKey }) => lockKey ?? [])}::text[]) and ${current}',
    replace: 'where false and lock_key = any(${held.flatMap(({ lockKey }) => lockKey ?? [])}::text[]) and ${current}',
    tests: [race('lapsed-lock')],
  },
  {
    name: 'a parent that closes before its last child',
    file: `${lifecycle}/close.ts`,
    find: 'and not exists (select from ${t.liveJobs} child where child.parent_job_id = parent.job_id)',
    replace: '',
    tests: [basics],
  },
  {
    name: 'a child counted twice',
    file: `${lifecycle}/close.ts`,
    find: "(count(*) filter (where status <> 'completed'))",
    replace: "(2 * count(*) filter (where status <> 'completed'))",
    tests: [basics],
  },
  {
    name: 'a chained job although the attempt was stale',
    file: `${attempt}/settle.ts`,
    find: 'if (settled[0] === undefined) return settled',
    replace: '',
    tests: [race('stale-attempt')],
  },
  {
    name: 'children although the attempt was stale',
    file: `${lifecycle}/defer.ts`,
    find: 'if (parent === undefined) return undefined',
    replace: '',
    tests: [race('stale-attempt')],
  },
  {
    name: 'a submission that takes a lock in use',
    file: `${lifecycle}/submit.ts`,
    find: 'and expires_at <= ${t.now}\n           and not exists (select from ${t.liveJobs} job where job.job_id = held.job_id)',
    replace: '',
    tests: ['packages/engine/src/lifecycle/submit.test.ts'],
  },
  {
    name: 'a dedup conflict that keeps the lock it had taken',
    file: `${lifecycle}/submit.ts`,
    find: 'if (rows.length === 0) return\n',
    replace: 'return\n',
    tests: ['packages/engine/src/lifecycle/submit.test.ts'],
  },
  {
    name: 'a recovery of what is not stale',
    file: `${lifecycle}/recover.ts`,
    find: "and locked_at < ${t.now} - ${options.staleMs}::bigint * interval '1 millisecond'",
    replace: 'and ${options.staleMs}::bigint is not null',
    tests: [basics],
  },
  {
    name: 'a recovery that lets the next attempt in at once',
    file: `${lifecycle}/recover.ts`,
    find: 'set attempt_id = ended.attempt_id, held_until = ended.lease_until',
    replace: 'set attempt_id = null, held_until = null',
    tests: [race('recover-against-worker')],
  },
  {
    name: 'retry later that spends the attempt',
    file: `${lifecycle}/retry-later.ts`,
    find: 'attempts: sql`attempts - 1`',
    replace: 'attempts: sql`attempts`',
    tests: [basics],
  },
  {
    name: 'a handler process that does not look for its supervisor',
    file: `${isolated}/watchdog.ts`,
    find: 'if (process.ppid !== supervisor) killGroup(process.pid)',
    replace: '',
    tests: [signals],
  },
  {
    name: 'an isolated handler that may go on after a cancel',
    file: `${isolated}/isolated.ts`,
    find: 'await handlerProcess.kill()',
    replace: '',
    tests: [`${isolated}/isolated.test.ts`],
  },
  {
    name: 'a handler process whose end nobody reports',
    file: `${isolated}/handler-process.ts`,
    find: 'this.#done(outcome)\n  }\n\n  #done',
    replace: '}\n\n  #done',
    tests: [`${isolated}/isolated.test.ts`],
  },
  {
    name: 'a second signal that is not heard',
    file: 'packages/engine/src/worker/stop-on-signals.ts',
    find: 'process.exit(128 + constants.signals[signal])',
    replace: 'return',
    tests: [signals],
  },
]
