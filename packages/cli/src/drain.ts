import { drainLevel, type Drain } from '@fencepost/client'
import { command } from './command/command.ts'
import { clientSettings, connect } from './connection.ts'
import { plain } from './output/plain.ts'

export const drain = command({
  name: 'drain',
  summary: 'Says or sets whether new work is refused',
  arguments: {
    level: {
      description: 'off: none is refused; submissions: nothing new is taken; all: nothing is claimed either.',
      optional: true,
      choices: drainLevel.options,
    },
  },
  settings: clientSettings,
  async run({ args, settings, output }) {
    const client = connect(settings)
    const now = args.level === undefined ? await client.getDrain() : await client.setDrain(args.level)
    output.answer(now, () => describe(now))
  },
})

function describe({ level, updated_at: at, updated_by: by }: Drain): string {
  const since = at === null ? '' : ` since ${at}${by === null ? '' : `, by ${plain(by)}`}`
  return `Drain is ${level}${since}.`
}
