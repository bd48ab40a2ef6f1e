import type { Mutant } from './mutant.ts'

const waits = 'packages/engine/src/read/wait.test.ts'

export const mutants: readonly Mutant[] = [
  {
    name: 'a result that does not fit its schema and is tried again',
    file: 'packages/engine/src/attempt/run.ts',
    find: " || (error instanceof FencepostError && error.code === 'result_invalid')",
    replace: '',
    tests: [waits],
  },
  {
    name: 'a result that is stored as it was returned',
    file: 'packages/engine/src/attempt/run.ts',
    find: 'await parseResult(operation, value), await prepare',
    replace: 'value, await prepare',
    tests: [waits],
  },
  {
    name: 'a wait that does not look before it listens, or after',
    file: 'packages/engine/src/read/waits.ts',
    find: '    this.#lookAgain = true\n    if (this.#looking) return\n',
    replace: '    return\n',
    tests: [waits],
  },
  {
    name: 'a wait that goes on when its engine is closed',
    file: 'packages/engine/src/read/waits.ts',
    find: 'failed(closed())\n',
    replace: 'void failed\n',
    tests: [waits],
  },
]
