import { config } from '../configuration/config-command.ts'
import { doctor } from '../doctor/doctor.ts'
import { drain } from '../drain.ts'
import { cancelJob, deleteJob, explainJob, jobEvents, listJobs, recoverJob, showJob } from '../jobs/commands.ts'
import { submit } from '../jobs/submit.ts'
import { abortPipeline, showPipeline } from '../pipelines.ts'
import { migrate } from '../service/migrate.ts'
import { serve } from '../service/serve.ts'
import { up } from '../service/up.ts'
import { worker } from '../service/worker.ts'
import { createTokenCommand, listTokensCommand, revokeTokenCommand } from '../tokens.ts'
import { workers } from '../workers.ts'
import type { Command } from './command.ts'

/** Every command, in the order of the help. docs/reference/cli.md lists the same; a test compares them. */
export const commands: readonly Command[] = [
  up,
  serve,
  worker,
  migrate,
  submit,
  listJobs,
  showJob,
  cancelJob,
  deleteJob,
  recoverJob,
  jobEvents,
  explainJob,
  showPipeline,
  abortPipeline,
  workers,
  drain,
  createTokenCommand,
  listTokensCommand,
  revokeTokenCommand,
  doctor,
  config,
]
