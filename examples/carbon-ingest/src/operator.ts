import { randomUUID } from 'node:crypto'
import { basename } from 'node:path'
import type { Engine, Submitted } from '@fencepost/engine'
import { csvIngest } from './csv-ingest.ts'

/** What an operator is told about an ingest he wanted to start. */
export type Started = { started: true; jobId: string; pipelineId: string } | { started: false; message: string }

/** Starts an ingest in a pipeline of its own. */
export async function startIngest(
  engine: Engine,
  ingest: { year: number; file: string; rows?: number },
  by: string,
): Promise<Started> {
  const pipelineId = randomUUID()
  const answer = await engine.submit(csvIngest, ingest, { by, pipelineId })
  if (answer.submitted) return { started: true, jobId: answer.jobId, pipelineId }
  return { started: false, message: `${basename(ingest.file)} was not started: ${await reasonOf(engine, answer)}` }
}

async function reasonOf(engine: Engine, conflict: Exclude<Submitted, { submitted: true }>): Promise<string> {
  if (conflict.why === 'drained') return 'new work is refused at present. Try again later.'
  const { jobId } = conflict.holder
  const holder = await engine.get(jobId)
  const who = holder?.submittedBy === undefined ? '' : ` started by ${holder.submittedBy}`
  return `job ${jobId},${who} and ${holder?.status ?? 'just ended'}, is doing the same. Wait for it, or cancel it.`
}

/** Puts a stuck job back, and says what came of it. */
export async function recoverJob(
  engine: Engine,
  jobId: string,
  by: string,
): Promise<{ recovered: boolean; message: string }> {
  const answer = await engine.recover(jobId, { by })
  if (answer.recovered) return { recovered: true, message: `job ${jobId} is put back and will be run again` }
  switch (answer.why) {
    case 'not_stale':
      return refusal(
        `it was claimed at ${answer.claimedAt}, and is not taken for stuck before ${answer.staleMs / 1000} s have passed`,
      )
    case 'not_running':
      return refusal(`it is ${answer.status}`)
    case 'not_found':
      return refusal('there is no such job')
    case 'waiting_for_children':
      return refusal('it waits for its children')
  }
  function refusal(why: string) {
    return { recovered: false, message: `job ${jobId} is not put back: ${why}` }
  }
}
