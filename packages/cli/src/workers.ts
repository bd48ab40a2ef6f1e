import { command } from './command/command.ts'
import { clientSettings, connect } from './connection.ts'
import { plain } from './output/plain.ts'
import { table } from './output/table.ts'

export const workers = command({
  name: 'workers',
  summary: 'Lists the worker processes, those seen last first',
  settings: clientSettings,
  async run({ settings, output }) {
    const found = await connect(settings).listWorkers()
    const rows = found.map((one) => [
      plain(one.worker_id),
      plain(one.host),
      String(one.pid),
      plain(one.version),
      String(one.concurrency),
      one.lost ? output.style('red', 'lost') : output.style('green', 'alive'),
      plain(one.operations.join(', ')),
    ])
    output.answer(found, () =>
      rows.length === 0
        ? 'No workers.'
        : table(['WORKER', 'HOST', 'PID', 'VERSION', 'CONCURRENCY', 'STATE', 'OPERATIONS'], rows),
    )
  },
})
