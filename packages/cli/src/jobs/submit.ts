import type { Submission } from '@fencepost/client'
import { command } from '../command/command.ts'
import { clientSettings, connect } from '../connection.ts'
import { exitOf } from './commands.ts'
import { readPayload } from './payload.ts'
import { watchJob } from './watch.ts'

export const submit = command({
  name: 'submit',
  summary: 'Submits a job',
  arguments: { operation: { description: 'The name of the operation.' } },
  options: {
    payload: {
      kind: 'text',
      placeholder: 'json',
      description: 'The payload as JSON; @path reads a file, - reads standard input.',
      default: '{}',
    },
    wait: { kind: 'boolean', description: 'Follow it to its end, as jobs show --watch does.' },
    priority: { kind: 'integer', placeholder: 'number', description: 'Smaller is sooner; 0 if left out.' },
    delayMs: { kind: 'integer', placeholder: 'ms', description: 'Not before so many milliseconds from now.', min: 0 },
    runAfter: { kind: 'text', placeholder: 'time', description: 'Not before this time, RFC 3339.' },
    maxAttempts: { kind: 'integer', placeholder: 'number', description: 'Instead of the operation’s.', min: 1 },
    attemptTimeoutMs: {
      kind: 'integer',
      placeholder: 'ms',
      description: 'How long each attempt may take, instead of the operation’s.',
      min: 1,
    },
    startBy: { kind: 'text', placeholder: 'time', description: 'Fails unless it has started by this time, RFC 3339.' },
    startWithinMs: {
      kind: 'integer',
      placeholder: 'ms',
      description: 'Fails unless it has started so many milliseconds from now.',
      min: 1,
    },
    queue: { kind: 'text', placeholder: 'name', description: 'Instead of the operation’s.' },
    lockKey: {
      kind: 'text',
      placeholder: 'key',
      description: 'The lock, for an operation that takes one from its callers.',
    },
    slotKey: {
      kind: 'text',
      placeholder: 'key',
      description: 'The slot, for an operation that takes one from its callers.',
    },
    dedupKey: {
      kind: 'text',
      placeholder: 'key',
      description: 'The dedup key, for an operation that takes one from its callers.',
    },
    onLocked: {
      kind: 'text',
      choices: ['refuse', 'wait'],
      description: 'While another job holds its lock: refused, or pending until its turn. Else as the operation says.',
    },
    pipelineId: { kind: 'text', placeholder: 'id', description: 'The pipeline that the job belongs to.' },
    tag: { kind: 'list', placeholder: 'tag', description: 'A word to find it by; can be given several times.' },
    idempotencyKey: {
      kind: 'text',
      placeholder: 'key',
      description: 'Makes repeating safe: the same key and submission get the first answer again for 24 hours.',
    },
  },
  settings: clientSettings,
  async run({ args, options, settings, output }) {
    const client = connect(settings)
    const submission: Submission = {
      payload: readPayload(options.payload, 'submit'),
      priority: options.priority,
      delay_ms: options.delayMs,
      run_after: options.runAfter,
      max_attempts: options.maxAttempts,
      timeout_ms: options.attemptTimeoutMs,
      start_by: options.startBy,
      start_within_ms: options.startWithinMs,
      queue: options.queue,
      lock_key: options.lockKey,
      slot_key: options.slotKey,
      dedup_key: options.dedupKey,
      on_locked: options.onLocked,
      pipeline_id: options.pipelineId,
      tags: options.tag === undefined ? undefined : [...options.tag],
    }
    const job = await client.submitJob(args.operation, submission, { idempotencyKey: options.idempotencyKey })
    // At once: whoever waits may want to look at it from elsewhere, or stop waiting.
    if (options.wait && !output.json) output.draw(`Job ${job.job_id} is submitted.\n`)
    if (options.wait) return exitOf(await watchJob(client, job.job_id, output))
    output.answer(job, () => `Job ${job.job_id} is submitted.`)
    return 'ok'
  },
})
