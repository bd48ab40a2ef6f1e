import type { Mutant } from './mutant.ts'

const lifecycle = 'packages/engine/src/lifecycle'
const tests = [`${lifecycle}/run-again.test.ts`]

export const mutants: readonly Mutant[] = [
  {
    name: 'a job that two callers at once run again twice',
    file: `${lifecycle}/run-again.ts`,
    find: '         order by job_id\n           for update`,',
    replace: '         order by job_id`,',
    tests,
    by: 'two calls at the same moment',
  },
  {
    name: 'a job that is run again while it is already',
    file: `${lifecycle}/run-again.ts`,
    find: 'where again.run_again_of = any(${jobIds}::uuid[])`,',
    replace: 'where false and again.run_again_of = any(${jobIds}::uuid[])`,',
    tests,
    by: 'while the new job is unfinished',
  },
  {
    name: 'a completed job that is run again',
    file: `${lifecycle}/run-again.ts`,
    find: "and status <> 'completed' and deleted_at is null",
    replace: 'and deleted_at is null',
    tests,
    by: 'pending, running, completed',
  },
  {
    name: 'a pipeline that is judged by the job before',
    file: 'packages/engine/src/read/pipeline.ts',
    find: 'parentJobId === undefined && runAgainAs === undefined',
    replace: 'parentJobId === undefined',
    tests,
    by: 'a pipeline is judged',
  },
]
