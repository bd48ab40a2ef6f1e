import { jobStatus, type Job, type JobEvent } from '@fencepost/client'
import { command } from '../command/command.ts'
import { clientSettings, connect } from '../connection.ts'
import type { Exit } from '../exit-codes.ts'
import { plainLines } from '../output/plain.ts'
import { describeEvent, describeJob, describeJobs, statusWord } from './describe.ts'
import { filterOf, filterOptions } from './filter-options.ts'
import { limitOption, pageLimit, readLimit, upTo } from './limit.ts'
import { watchJob } from './watch.ts'

const jobId = { job_id: { description: 'The id of the job: 32 hexadecimal digits.' } } as const

export const listJobs = command({
  name: 'jobs list',
  summary: 'Lists jobs, newest first',
  options: {
    ...filterOptions,
    limit: limitOption,
    after: { kind: 'text', placeholder: 'job_id', description: 'Only jobs submitted before this one: the next page.' },
    count: { kind: 'boolean', description: 'Say how many there are instead: exact up to 10,000, above that about.' },
  },
  settings: clientSettings,
  async run({ options, settings, output }) {
    const client = connect(settings)
    const filter = filterOf(options, 'jobs list')
    if (options.count) {
      const counted = await client.countJobs(filter)
      output.answer(counted, () => `${counted.exact ? '' : 'about '}${counted.count}`)
      return
    }
    const limit = readLimit(options.limit)
    const jobs = await upTo(limit, client.eachJob({ ...filter, limit: pageLimit(limit), after: options.after }))
    output.answer(jobs, () => describeJobs(jobs, output))
  },
})

export const showJob = command({
  name: 'jobs show',
  summary: 'Shows a job',
  arguments: jobId,
  options: {
    watch: {
      kind: 'boolean',
      description: 'Follow it to its end, with its events and a bar; exit code 1 if it does not complete.',
    },
  },
  settings: clientSettings,
  async run({ args, options, settings, output }) {
    const client = connect(settings)
    if (options.watch) return exitOf(await watchJob(client, args.job_id, output))
    const job = await client.getJob(args.job_id)
    output.answer(job, () => describeJob(job, output))
    return 'ok'
  },
})

export const cancelJob = command({
  name: 'jobs cancel',
  summary: 'Cancels a pending or running job, with everything that descends from it',
  arguments: jobId,
  settings: clientSettings,
  async run({ args, settings, output }) {
    const job = await connect(settings).cancelJob(args.job_id)
    output.answer(job, () => `Job ${job.job_id} is ${statusWord(job, output)}.`)
  },
})

export const deleteJob = command({
  name: 'jobs delete',
  summary: 'Hides a finished job; retention removes it later',
  arguments: jobId,
  settings: clientSettings,
  async run({ args, settings, output }) {
    await connect(settings).deleteJob(args.job_id)
    output.answer({ job_id: args.job_id, deleted: true }, () => `Job ${args.job_id} is deleted.`)
  },
})

export const runJobAgain = command({
  name: 'jobs run-again',
  summary: 'Submits a failed or cancelled job anew, as a job that names it',
  arguments: jobId,
  settings: clientSettings,
  async run({ args, settings, output }) {
    const job = await connect(settings).runAgain(args.job_id)
    output.answer(job, () => `Job ${args.job_id} is run again as ${job.job_id}.`)
  },
})

export const recoverJob = command({
  name: 'jobs recover',
  summary: 'Puts a stuck running job back, if its claim is older than the stale timeout of the server',
  arguments: jobId,
  settings: clientSettings,
  async run({ args, settings, output }) {
    const job = await connect(settings).recoverJob(args.job_id)
    output.answer(job, () => `Job ${job.job_id} is ${statusWord(job, output)} again.`)
  },
})

export const jobEvents = command({
  name: 'jobs events',
  summary: 'Prints the events of a job, oldest first',
  arguments: jobId,
  options: {
    follow: { kind: 'boolean', description: 'Go on with live ones until the job has ended.' },
    after: { kind: 'text', placeholder: 'id', description: 'Only events after this one.' },
    limit: {
      kind: 'integer',
      placeholder: 'number',
      description: 'At most so many, without --follow.',
      min: 1,
      max: 10_000,
    },
  },
  settings: clientSettings,
  async run({ args, options, settings, output }) {
    const client = connect(settings)
    const { after, limit } = options
    const print = (event: JobEvent) => output.answer(event, () => describeEvent(event, output))
    if (options.follow) {
      for await (const event of client.events(args.job_id, { after, giveUpAfterMs: 30_000 })) print(event)
    } else {
      let left = limit ?? Number.POSITIVE_INFINITY
      for await (const event of client.eachEvent(args.job_id, { after, limit })) {
        print(event)
        left -= 1
        if (left === 0) break
      }
    }
  },
})

export const explainJob = command({
  name: 'jobs explain',
  summary: 'Says why a job is not running',
  arguments: jobId,
  settings: clientSettings,
  async run({ args, settings, output }) {
    const explanation = await connect(settings).explainJob(args.job_id)
    output.answer(explanation, () => plainLines(explanation.message))
  },
})

export const jobChildren = command({
  name: 'jobs children',
  summary: 'Lists the children of a job, newest first',
  arguments: jobId,
  options: {
    status: { kind: 'text', choices: jobStatus.options, description: 'Only children in this state.' },
    limit: limitOption,
    after: { kind: 'text', placeholder: 'job_id', description: 'Only jobs submitted before this one: the next page.' },
  },
  settings: clientSettings,
  async run({ args, options, settings, output }) {
    const limit = readLimit(options.limit)
    const found = connect(settings).eachChild(args.job_id, { ...options, limit: pageLimit(limit) })
    const jobs = await upTo(limit, found)
    output.answer(jobs, () => describeJobs(jobs, output))
  },
})

/** How a command ends that has waited for a job. */
export function exitOf({ status }: Job): Exit {
  return status === 'completed' ? 'ok' : 'failed'
}
