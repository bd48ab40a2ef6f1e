import type { Mutant } from './mutant.ts'

const queues = 'packages/engine/src/lifecycle/queues.test.ts'

export const mutants: readonly Mutant[] = [
  {
    name: 'a claim by id that does not look whether the queue is paused',
    file: 'packages/engine/src/lifecycle/claim.ts',
    find: ' and ${ofOpenQueue(t, sql`job.queue`)}',
    replace: '',
    tests: [queues],
  },
  {
    name: 'a quick claim that does not look whether the queue is paused',
    file: 'packages/engine/src/lifecycle/claim-plain.ts',
    find: ' and ${isOpen(t, blanks.queue)} ${hurry}',
    replace: ' ${hurry}',
    tests: [queues],
  },
  {
    name: 'a resumed queue whose workers are not woken',
    file: 'packages/engine/src/engine.ts',
    find: '    this.#context.wake.queues([queue])\n',
    replace: '',
    tests: [queues],
  },
]
