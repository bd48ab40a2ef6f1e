import { command } from './command/command.ts'
import { clientSettings, connect } from './connection.ts'
import { plain } from './output/plain.ts'
import { table } from './output/table.ts'

export const operations = command({
  name: 'operations',
  summary: 'Lists the operations that the server takes jobs for',
  settings: clientSettings,
  async run({ settings, output }) {
    const found = await connect(settings).listOperations()
    const rows = found.map((one) => [
      plain(one.name),
      plain(one.queue),
      String(one.max_attempts),
      `${one.lease_ms} ms`,
      one.isolation,
      one.keys,
    ])
    output.answer(found, () =>
      rows.length === 0
        ? 'No operations: the server was started without --module.'
        : table(['OPERATION', 'QUEUE', 'ATTEMPTS', 'LEASE', 'ISOLATION', 'KEYS'], rows),
    )
  },
})
