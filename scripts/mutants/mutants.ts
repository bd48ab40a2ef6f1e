import { mutants as ofEngine } from './engine-mutants.ts'
import { mutants as ofExpiry } from './expire-mutants.ts'
import { mutants as ofHealth } from './health-mutants.ts'
import { mutants as ofIceberg } from './iceberg-mutants.ts'
import { mutants as ofJoinedFiles } from './joined-files-mutants.ts'
import { mutants as ofLocks } from './lock-mutants.ts'
import { mutants as ofQueues } from './queue-mutants.ts'
import { mutants as ofResults } from './result-mutants.ts'
import { mutants as ofMaintenance } from './maintenance-mutants.ts'
import { mutants as ofServer } from './server-mutants.ts'
import { mutants as ofStorage } from './storage-mutants.ts'
import { mutants as ofSweep } from './sweep-mutants.ts'
import { mutants as ofTimeLimits } from './time-limit-mutants.ts'
import { mutants as ofWorker } from './worker-mutants.ts'

export const mutants = [
  ...ofEngine,
  ...ofSweep,
  ...ofTimeLimits,
  ...ofQueues,
  ...ofResults,
  ...ofWorker,
  ...ofLocks,
  ...ofServer,
  ...ofIceberg,
  ...ofJoinedFiles,
  ...ofExpiry,
  ...ofStorage,
  ...ofHealth,
  ...ofMaintenance,
]
