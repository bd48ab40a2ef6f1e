import { workerData } from 'node:worker_threads'
import { killGroup } from './process-group.ts'

// A thread of the handler process: its main thread may be blocked by the handler, and would not hear that the
// supervisor has died. An orphan gets another parent at once.

const lookEveryMs = 100
const supervisor = workerData as number

setInterval(() => {
  if (process.ppid !== supervisor) killGroup(process.pid)
}, lookEveryMs)
