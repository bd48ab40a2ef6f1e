import type { Queue } from '@fencepost/client'
import { command } from './command/command.ts'
import { clientSettings, connect } from './connection.ts'
import { plain } from './output/plain.ts'
import { table } from './output/table.ts'

const named = { name: { description: 'The name of the queue.' } }

export const listQueues = command({
  name: 'queues list',
  summary: 'Lists the queues that are known, and whether they are paused',
  settings: clientSettings,
  async run({ settings, output }) {
    const found = await connect(settings).listQueues()
    const rows = found.map((one) => [
      plain(one.queue),
      one.paused_at === null ? 'open' : output.style('yellow', 'paused'),
      one.paused_at ?? '',
      plain(one.paused_by ?? ''),
    ])
    output.answer(found, () => (rows.length === 0 ? 'No queues.' : table(['QUEUE', 'STATE', 'SINCE', 'BY'], rows)))
  },
})

export const pauseQueue = command({
  name: 'queues pause',
  summary: 'Stops claims from a queue until it is resumed; submissions and running jobs go on',
  arguments: named,
  settings: clientSettings,
  async run({ args, settings, output }) {
    const queue = await connect(settings).pauseQueue(args.name)
    output.answer(queue, () => describe(queue))
  },
})

export const resumeQueue = command({
  name: 'queues resume',
  summary: 'Lets claims from a queue go on',
  arguments: named,
  settings: clientSettings,
  async run({ args, settings, output }) {
    const queue = await connect(settings).resumeQueue(args.name)
    output.answer(queue, () => describe(queue))
  },
})

function describe({ queue, paused_at: at, paused_by: by }: Queue): string {
  if (at === null) return `Queue ${plain(queue)} is open.`
  return `Queue ${plain(queue)} is paused since ${at}${by === null ? '' : `, by ${plain(by)}`}.`
}
