// What must happen before this process ends, without taking the end out of the program's hands:
//
//   the program exits, or throws      the 'exit' event
//   a signal, with no other listener  we listen only because the default gives no notice; afterwards the same signal is
//                                     sent again, with nobody listening, and ends the process as it would have
//   a signal the program listens to   nothing: it decides, and if it decides to exit, see above
//   SIGKILL, a crash of Node itself   nothing can be done here

type Signal = 'SIGINT' | 'SIGTERM' | 'SIGHUP'
const signals: readonly Signal[] = ['SIGINT', 'SIGTERM', 'SIGHUP']

// Another copy of this module in the same program must not be taken for the program's own listener: each of the two
// would leave the end to the other.
const passive = Symbol.for('fencepost.passive-listener')
type Listener = ((signal: NodeJS.Signals) => void) & { [passive]?: true }

const tasks = new Set<() => void>()

/** Runs the task, which must be synchronous, when the process ends. Returns what takes it back. */
export function beforeProcessEnd(task: () => void): () => void {
  if (tasks.size === 0) listen()
  tasks.add(task)
  return () => {
    if (tasks.delete(task) && tasks.size === 0) unlisten()
  }
}

function runTasks(): void {
  for (const task of tasks) {
    try {
      task()
    } catch {
      // The process is ending for a reason of its own, which an error here must not replace.
    }
  }
  tasks.clear()
}

const onSignal: Listener = (signal) => {
  if (isHandledByProgram(signal)) return
  runTasks()
  unlisten()
  // Passive listeners that remain come after this one, find themselves alone, and do the same.
  if (process.listenerCount(signal) === 0) process.kill(process.pid, signal)
}
onSignal[passive] = true

function isHandledByProgram(signal: NodeJS.Signals): boolean {
  const others = process.listeners(signal).filter((listener) => !(listener as Listener)[passive])
  return others.length > signalExitListeners()
}

// The package signal-exit, which many command line tools load, is passive in the same way, and says so here.
function signalExitListeners(): number {
  const version3 = (process as { __signal_exit_emitter__?: { count?: unknown } }).__signal_exit_emitter__
  const version4 = (globalThis as { [key: symbol]: { count?: unknown } | undefined })[Symbol.for('signal-exit emitter')]
  return [version3?.count, version4?.count].reduce<number>(
    (sum, count) => sum + (typeof count === 'number' ? count : 0),
    0,
  )
}

function listen(): void {
  process.on('exit', runTasks)
  // First in line: a listener added with `once` is gone when its turn is over, and would be missed by the count.
  for (const signal of signals) process.prependListener(signal, onSignal)
}

function unlisten(): void {
  process.off('exit', runTasks)
  for (const signal of signals) process.off(signal, onSignal)
}
