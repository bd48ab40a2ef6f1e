import type { Mutant } from './mutant.ts'

const schedules = 'packages/engine/src/schedules'
const tests = [`${schedules}/schedules.test.ts`]

export const mutants: readonly Mutant[] = [
  {
    name: 'a due time that every process submits for',
    file: `${schedules}/submit-due.ts`,
    find: '           for update skip locked`,',
    replace: '`,',
    tests,
    by: 'that another process is submitting for',
  },
  {
    name: 'a schedule that ignores the job before',
    file: `${schedules}/submit-due.ts`,
    find: "row.overlap === 'skip' && row.last_is_live",
    replace: "row.overlap === 'skip' && row.last_job_id === ''",
    tests,
    by: 'where overlap is skipped',
  },
  {
    name: 'a schedule that catches up what was due while it was paused',
    file: `${schedules}/change.ts`,
    find: 'paused ? kept.next_ms : nextTime(ruleOf(kept), await nowMs(db))',
    replace: 'kept.next_ms + 0 * nextTime(ruleOf(kept), await nowMs(db))',
    tests,
    by: 'that is paused',
  },
]
