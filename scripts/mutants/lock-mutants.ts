import type { Mutant } from './mutant.ts'

const lifecycle = 'packages/engine/src/lifecycle'
const races = 'packages/engine/test/races/waiting-locks.test.ts'
const deferTests = [`${lifecycle}/defer.test.ts`]
const tests = [`${lifecycle}/take-locks.test.ts`]

export const mutants: readonly Mutant[] = [
  {
    name: 'a job that joins a line without keeping the holder from ending unseen',
    file: `${lifecycle}/take-locks.ts`,
    find: '           for key share`,',
    replace: '`,',
    tests: [races],
    by: 'waits for the submission to commit',
  },
  {
    name: 'a job that joins a line and keeps its holder from renewing',
    file: `${lifecycle}/take-locks.ts`,
    find: '           for key share`,',
    replace: '           for update`,',
    tests: [races],
    by: 'its holder is claimed, renewed and retried',
  },
  {
    name: 'a lock that is free again and waited for all the same',
    file: `${lifecycle}/take-locks.ts`,
    find: 'if (joined.has(submission.lockKey as string)) waiting.add(jobId)',
    replace: 'if (joined.size >= 0 || submission) waiting.add(jobId)',
    tests: [races],
    by: 'between its two looks',
  },
  {
    name: 'a waiting job that can be claimed',
    file: `${lifecycle}/submit.ts`,
    find: "${when === 'waiting' ? farAway : runAfter},",
    replace: "${when === 'waiting' ? sql`timestamptz '9999-01-02 00:00+00' - interval '8000 years'` : runAfter},",
    tests,
    by: 'nobody can claim it',
  },
  {
    name: 'a sweep that does not look for free locks that are waited for',
    file: `${lifecycle}/sweep.ts`,
    find: 'found.unheld ? await handOverLocks(db) : []',
    replace: 'found.unheld ? [] : []',
    tests: [races],
    by: 'gets the lock from the sweep',
  },
  {
    name: 'a part that runs although the job fails for its children',
    file: `${lifecycle}/close.ts`,
    find: 'next_part is not null and not ${failed} as continued',
    replace: 'next_part is not null and (${failed} or true) as continued',
    tests: deferTests,
    by: 'does not run when the job fails',
  },
  {
    name: 'a part that has only the attempts that are left',
    file: `${lifecycle}/requeue.ts`,
    find: "status = 'pending', attempts = 0,",
    replace: "status = 'pending', attempts = least(attempts, max_attempts - 1),",
    tests: deferTests,
    by: 'runs once they have ended',
  },
  {
    name: 'a part that is claimed by whoever has the operation',
    file: `${lifecycle}/requeue.ts`,
    find: "operation = ${operationOf} || '/' || ${part},",
    replace: "operation = ${operationOf} || left('/' || ${part}, 0),",
    tests: deferTests,
    by: 'is claimed only by those who have it',
  },
  {
    name: 'a second deferral that is judged by the children of the first',
    file: `${lifecycle}/defer.ts`,
    find: 'parent.failed_before + failAt(failWhen, total)',
    replace: '0 * parent.failed_before + failAt(failWhen, total)',
    tests: deferTests,
    by: 'only the new children are judged',
  },
  {
    name: 'a child that waits for the lock of its own parent',
    file: `${lifecycle}/defer.ts`,
    find: "(onLocked === 'wait' ? (lockKey ?? []) : [])",
    replace: "(onLocked === 'wait' && lockKey === '' ? lockKey : [])",
    tests: deferTests,
    by: 'never waits for the lock of a job that waits for it',
  },
  {
    name: 'a child that is left out although nobody said so',
    file: `${lifecycle}/defer.ts`,
    find: "if (answer.why !== 'locked' || children[nth]?.onLocked !== 'skip') throw",
    replace: "if (answer.why !== 'locked' || children[nth] === undefined) throw",
    tests: deferTests,
    by: 'refuses all of it',
  },
  {
    name: 'a cancelled job that was never in line',
    file: `${lifecycle}/finish.ts`,
    find: 'coalesce(waiting_run_after, run_after),',
    replace: 'run_after,',
    tests,
    by: 'its record says when it was to run',
  },
]
