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
  {
    name: 'a page that looks at every job for what no index finds',
    file: 'packages/engine/src/read/scan.ts',
    find: 'return last?.job_id',
    replace: 'return last?.job_id.slice(32) || undefined',
    tests: ['packages/engine/src/read/filter.test.ts'],
    by: 'a page says where to go on',
  },
  {
    name: 'a list that ends where its look ended',
    file: 'packages/engine/src/read/list.ts',
    find: 'if (jobs.length === limit || until === undefined) return jobs',
    replace: 'if (jobs.length <= limit || until === undefined) return jobs',
    tests: ['packages/engine/src/read/filter.test.ts'],
    by: 'a list goes on itself',
  },
  {
    name: 'an act on more jobs than were previewed',
    file: 'packages/engine/src/bulk/bulk-acts.ts',
    find: 'if (count > previewed * growth)',
    replace: 'if (count > previewed * growth * 2)',
    tests: ['packages/engine/src/bulk/bulk-acts.test.ts'],
    by: 'a set that has grown',
  },
  {
    name: 'a token that is good for ever',
    file: 'packages/engine/src/bulk/bulk-acts.ts',
    find: 'and previewed_at > ${t.now} - ${validMs}',
    replace: 'and previewed_at > ${t.now} - 1000 * ${validMs}',
    tests: ['packages/engine/src/bulk/bulk-acts.test.ts'],
    by: 'a token is good for a minute',
  },
  {
    name: 'an act that includes jobs submitted after its preview',
    file: 'packages/engine/src/bulk/matching.ts',
    find: 'job_id < ${beforeJobId}::uuid and',
    replace: '(job_id < ${beforeJobId}::uuid or true) and',
    tests: ['packages/engine/src/bulk/bulk-acts.test.ts'],
    by: 'submitted after the preview',
  },
]
