import { completion } from './completion/command.ts'
import { config } from './config.ts'
import { doctor } from './doctor/command.ts'
import { drain } from './drain.ts'
import { events } from './events.ts'
import {
  cancelJob,
  deleteJob,
  explainJob,
  jobChildren,
  jobEvents,
  listJobs,
  recoverJob,
  runJobAgain,
  showJob,
} from './jobs/commands.ts'
import { bulkJobs } from './jobs/bulk.ts'
import { submit } from './jobs/submit.ts'
import { lakeDemo } from './lake/command.ts'
import { operations } from './operations.ts'
import { abortPipeline, showPipeline } from './pipelines.ts'
import { migrate, serve, up, worker } from './service/commands.ts'
import { listQueues, pauseQueue, resumeQueue } from './queues.ts'
import { deleteSchedule, listSchedules, pauseSchedule, resumeSchedule, setSchedule } from './schedules.ts'
import { checkCatalogs, listCatalogs } from './tables/catalogs.ts'
import { listTables, maintainTable, planTable, showHealth } from './tables/commands.ts'
import { createToken, listTokens, revokeToken } from './tokens/commands.ts'
import { workers } from './workers.ts'
import type { Command } from './command/command.ts'

/** Every command, in the order of the help. docs/reference/cli.md lists the same; a test compares them. */
export const commands: readonly Command[] = [
  up,
  serve,
  worker,
  migrate,
  lakeDemo,
  submit,
  listJobs,
  showJob,
  cancelJob,
  deleteJob,
  recoverJob,
  runJobAgain,
  bulkJobs,
  jobEvents,
  explainJob,
  jobChildren,
  showPipeline,
  abortPipeline,
  listSchedules,
  setSchedule,
  pauseSchedule,
  resumeSchedule,
  deleteSchedule,
  listQueues,
  pauseQueue,
  resumeQueue,
  events,
  operations,
  workers,
  drain,
  listTables,
  showHealth,
  planTable,
  maintainTable,
  listCatalogs,
  checkCatalogs,
  createToken,
  listTokens,
  revokeToken,
  doctor,
  config,
  completion(() => commands),
]
