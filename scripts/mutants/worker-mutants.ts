import type { Mutant } from './mutant.ts'

const worker = 'packages/engine/src/worker'
const isolated = `${worker}/isolated`
const workerTest = (name: string) => `packages/engine/test/worker/${name}.test.ts`
const signals = workerTest('signals')

export const mutants: readonly Mutant[] = [
  {
    name: 'a poll that every claim puts off',
    file: `${worker}/fetcher.ts`,
    find: 'async #claim(queue: string, kind: Kind): Promise<void> {',
    replace: `async #claim(queue: string, kind: Kind): Promise<void> {
    clearTimeout(this.#pollTimer)
    this.#pollTimer = setTimeout(() => this.#poll(), this.#options.pollMs)`,
    tests: [`${worker}/fetcher.test.ts`],
    by: 'always has more',
  },
  {
    name: 'a queue that always has more and keeps the others waiting',
    file: `${worker}/fetcher.ts`,
    find: 'this.#promising.size > 0 || this.#surveyWanted\n',
    replace: 'this.#promising.size > 0\n',
    tests: [`${worker}/fetcher.test.ts`],
    by: 'always has more',
  },
  {
    name: 'a claim that brings less than was asked, taken for the end of the queue',
    file: `${worker}/fetcher.ts`,
    find: "else if (kind === 'plain' || found === 'some') this.#surveyWanted = true",
    replace: '',
    tests: [`${worker}/fetcher.test.ts`],
    by: 'less than was asked',
  },
  {
    name: 'a short claim that never begins anew',
    file: `${worker}/fetcher.ts`,
    find: 'from?.until ?? startedAt + continueMs',
    replace: 'Infinity',
    tests: [workerTest('continuation')],
  },
  {
    name: 'a claim for places that another one, under way, has taken',
    file: `${worker}/worker.ts`,
    find: 'this.inFlight - claiming',
    replace: 'this.inFlight',
    tests: [`${worker}/worker.test.ts`],
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
    file: `${worker}/stop-on-signals.ts`,
    find: 'process.exit(128 + constants.signals[signal])',
    replace: 'return',
    tests: [signals],
  },
  {
    name: 'a short lease that waits for the clock of a long one',
    file: `${worker}/renewer.ts`,
    find: 'leaseMs < this.#shortestMs',
    replace: 'this.#shortestMs === Infinity',
    tests: [`${worker}/renewer.test.ts`],
  },
  {
    name: 'handlers that are not told that Postgres cannot be reached',
    file: `${worker}/renewer.ts`,
    find: "held.attempt.abort('database_unreachable')",
    replace: '{}',
    tests: [`${worker}/renewer.test.ts`],
  },
  {
    name: 'renewals that wait for a connection of the pool',
    file: `${worker}/work.ts`,
    find: 'renewAttempts(context, renewing, attempts)',
    replace: 'engine.renew(attempts)',
    tests: [workerTest('busy-pool')],
  },
  {
    name: 'an outcome that is written once or never',
    file: `${worker}/settler.ts`,
    find: 'const passes = mayPass(error)',
    replace: 'const passes = false',
    tests: [`${worker}/settler.test.ts`],
  },
  {
    name: 'a shutdown that takes back what a handler came to',
    file: `${worker}/worker.ts`,
    find: 'if (this.#settler.isWriting(attempt)) return ended',
    replace: '',
    tests: [workerTest('shutdown-outcomes')],
  },
  {
    name: 'a claim that is answered too late and kept',
    file: `${worker}/worker.ts`,
    find: 'if (this.#stopped) {',
    replace: 'if (false) {',
    tests: [workerTest('shutdown-outcomes')],
  },
  {
    name: 'a job that begins though it was cancelled before',
    file: `${worker}/worker.ts`,
    find: 'if (attempt.abortReason === undefined) {',
    replace: 'if (true) {',
    tests: [workerTest('cancelled-while-ready')],
  },
  {
    name: 'a worker without room that never looks again',
    file: `${worker}/fetcher.ts`,
    find: 'this.#pollIn(this.#jittered())',
    replace: '{}',
    tests: [`${worker}/fetcher.test.ts`],
  },
  {
    name: 'idle connections that are trusted after one has died in silence',
    file: 'packages/engine/src/database/database.ts',
    find: 'isUnanswered(error) || isPlanStale(error)',
    replace: 'isPlanStale(error)',
    tests: [workerTest('silent-postgres')],
  },
  {
    name: 'a forgotten rejection that is settled while its handler goes on',
    file: `${worker}/in-process.ts`,
    find: 'await current.run(running, execute, context, attempt)',
    replace:
      "await Promise.race([current.run(running, execute, context, attempt), new Promise((resolve) => attempt.signal.addEventListener('abort', resolve))])",
    tests: [workerTest('forgotten-rejection')],
  },
  {
    name: 'a handler process that goes on after a forgotten rejection',
    file: `${isolated}/handler-process.ts`,
    find: 'running.rejected ??= outcome\n    this.killNow()',
    replace: 'this.#done(outcome)',
    tests: [`${isolated}/isolated.test.ts`],
    by: 'is killed after a forgotten',
  },
  {
    name: 'a stop that gives back a lock whose handler goes on',
    file: `${worker}/judged.ts`,
    find: 'return claimed.lockKey !== undefined || claimed.slotKey !== undefined',
    replace: 'return false',
    tests: [workerTest('lock-at-stop')],
  },
  {
    name: 'a report inside a transaction that waits for a second connection of the pool',
    file: 'packages/engine/src/attempt/attempt.ts',
    find: 'this.#inTransactions > 0 ? database.beside : database',
    replace: 'database',
    tests: [workerTest('busy-pool')],
    by: 'what handlers report inside',
  },
  {
    name: 'a pool that is used up and taken for a Postgres that is away',
    file: 'packages/engine/src/database/database.ts',
    find: 'this.#heldByCallers > 0 || this.#answeredAt > waitsSince',
    replace: 'false',
    tests: [workerTest('busy-pool')],
    by: 'a pool that handlers have used up',
  },
]
