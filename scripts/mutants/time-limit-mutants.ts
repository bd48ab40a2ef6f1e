import type { Mutant } from './mutant.ts'

const lifecycle = 'packages/engine/src/lifecycle'
const limits = `${lifecycle}/time-limits.test.ts`
const timeouts = 'packages/engine/test/worker/timeouts.test.ts'

export const mutants: readonly Mutant[] = [
  {
    name: 'a renewal past the timeout that moves the lease for ever',
    file: `${lifecycle}/renew.ts`,
    find: 'case when ${timeoutPassed(t)} then ${lastLease} else ${leaseUntil} end',
    replace: '${leaseUntil}',
    tests: [limits],
  },
  {
    name: 'a sweep that fails every attempt that has a timeout when its lease has passed',
    file: `${lifecycle}/overdue.ts`,
    find: 'sql`lease_until = ${lastLease}`',
    replace: 'sql`timeout_ms is not null`',
    tests: [limits],
  },
  {
    name: 'a claim that does not look at the time to start by',
    file: `${lifecycle}/due-jobs.ts`,
    find: 'return sql`job.run_after <= ${t.now} and ${mayStart(t)}`',
    replace: 'return sql`job.run_after <= ${t.now}`',
    tests: [limits],
  },
  {
    name: 'a job that has started once and fails for not having started',
    file: `${lifecycle}/start-by.ts`,
    find: 'start_by is not null and started_at is null and start_by <=',
    replace: 'start_by <=',
    tests: [limits],
  },
  {
    name: 'a timed-out job that frees its lock while its handler runs',
    file: `${lifecycle}/time-out.ts`,
    find: "keys === 'hold' ? holdSlots(t) : freeEnded({ t })",
    replace: 'freeEnded({ t })',
    tests: [timeouts],
  },
  {
    name: 'a handler that ended late and does not let go of its lock',
    file: 'packages/engine/src/worker/worker.ts',
    find: 'await attempt.letGo().catch(() => {}) // nobody renews them any more\n',
    replace: '',
    tests: [timeouts],
  },
  {
    name: 'a timed-out attempt that is given back',
    file: 'packages/engine/src/worker/judged.ts',
    find: "if (abortReason === 'timed_out' && ",
    replace: "if (abortReason === 'shutdown' && ",
    tests: [timeouts],
  },
  {
    name: 'a timed-out handler whose transaction is waited for',
    file: 'packages/engine/src/worker/worker.ts',
    find: "await this.#ports.endHandler(attempt) // its transactions hold the job's row\n    if",
    replace: 'if',
    tests: [timeouts],
  },
]
