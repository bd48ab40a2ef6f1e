import { command } from './command/command.ts'
import { clientSettings, connect } from './connection.ts'
import { describeEvent } from './jobs/describe.ts'

// A server that restarts is waited for, one that is gone is not.
const giveUpAfterMs = 30_000

export const events = command({
  name: 'events',
  summary: 'Prints the transitions of all jobs as they happen, until it is stopped',
  options: {
    follow: { kind: 'boolean', description: 'Accepted, as by jobs events: this command always follows.' },
    after: {
      kind: 'text',
      placeholder: 'id',
      description: 'Begin with those of the last 10 minutes after this event.',
    },
  },
  settings: clientSettings,
  async run({ options, settings, output }) {
    for await (const event of connect(settings).allEvents({ after: options.after, giveUpAfterMs })) {
      output.answer(event, () => `${event.job_id}  ${describeEvent(event, output)}`)
    }
  },
})
