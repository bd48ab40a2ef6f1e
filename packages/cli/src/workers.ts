import { command } from './command/command.ts'
import { clientSettings, connect } from './connection.ts'
import { table } from './output/table.ts'

export const workers = command({
  name: 'workers',
  summary: 'Lists the worker processes, those seen last first',
  settings: clientSettings,
  async run({ settings, output }) {
    const found = await connect(settings).listWorkers()
    const rows = found.map((one) => [
      one.worker_id,
      one.host,
      String(one.pid),
      one.version,
      String(one.concurrency),
      one.lost ? output.style('red', 'lost') : output.style('green', 'alive'),
      one.operations.join(', '),
    ])
    output.answer(found, () =>
      rows.length === 0
        ? 'No workers.'
        : table(['WORKER', 'HOST', 'PID', 'VERSION', 'CONCURRENCY', 'STATE', 'OPERATIONS'], rows),
    )
  },
})
