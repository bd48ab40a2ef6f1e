import { setTimeout as sleep } from 'node:timers/promises'
import { createInterface } from 'node:readline/promises'
import type { Act, BulkAct, Client } from '@fencepost/client'
import { command } from '../command/command.ts'
import { clientSettings, connect } from '../connection.ts'
import { UsageError } from '../failure.ts'
import { describeJobs } from './describe.ts'
import { filterOf, filterOptions } from './filter-options.ts'

const acts: Record<'run-again' | 'cancel' | 'delete', Act> = {
  'run-again': 'run_again',
  cancel: 'cancel',
  delete: 'delete',
}
const lookAgainMs = 500
/** Above this, the number is to be typed. */
const many = 100

export const bulkJobs = command({
  name: 'jobs bulk',
  summary: 'Runs again, cancels or deletes all jobs of a filter, after showing how many they are',
  arguments: { act: { choices: ['run-again', 'cancel', 'delete'], description: 'What to do to them.' } },
  options: {
    ...filterOptions,
    yes: { kind: 'boolean', description: 'Do not ask before it is done.' },
  },
  settings: clientSettings,
  async run({ args, options, settings, output }) {
    const client = connect(settings)
    const filter = filterOf(options, 'jobs bulk')
    const { count, sample, token } = await client.previewBulkAct({ act: acts[args.act], filter })
    output.note(
      `Jobs that match: ${count}${count > sample.length ? ', of which the first are' : ''}\n${describeJobs(sample, output)}`,
    )
    if (!options.yes) await confirm(count)
    const ended = await untilEnded(client, await client.startBulkAct(token))
    output.answer(ended, () => `The act is ${ended.state}: ${ended.done} done, ${ended.refused} refused.`)
    return ended.state === 'completed' ? 'ok' : 'failed'
  },
})

async function confirm(count: number): Promise<void> {
  if (!process.stdin.isTTY) throw new UsageError('Nobody can be asked here: give --yes.', { command: 'jobs bulk' })
  const wanted = count > many ? String(count) : 'y'
  const lines = createInterface({ input: process.stdin, output: process.stderr })
  try {
    const typed = await lines.question(count > many ? `Type ${count} to go on: ` : 'Go on? (y) ')
    if (typed.trim() !== wanted) throw new UsageError('Nothing was done.')
  } finally {
    lines.close()
  }
}

async function untilEnded(client: Client, started: BulkAct): Promise<BulkAct> {
  let seen = started
  while (seen.state === 'running') {
    await sleep(lookAgainMs)
    seen = await client.getBulkAct(started.bulk_act_id)
  }
  return seen
}
