import { tableRoutes } from '@fencepost/client'
import { command } from '../command/command.ts'
import { clientSettings, connect } from '../connection.ts'
import { UsageError } from '../failure.ts'
import { plain } from '../output/plain.ts'
import { table } from '../output/table.ts'

export const listCatalogs = command({
  name: 'catalogs list',
  summary: 'Lists the catalogs, and when their tables were last listed',
  settings: clientSettings,
  async run({ settings, output }) {
    const found = await connect(settings).call(tableRoutes.listCatalogs, {})
    const rows = found.map((one) => [
      plain(`${one.catalog}${one.is_default ? ' (default)' : ''}`),
      one.type,
      one.refreshed_at ?? 'never',
      plain(one.error ?? ''),
    ])
    output.answer(found, () => table(['CATALOG', 'TYPE', 'LISTED', 'ERROR'], rows))
  },
})

export const checkCatalogs = command({
  name: 'catalogs check',
  summary: 'Opens every catalog of the file and lists its namespaces, from here',
  settings: ['catalogs', 'database'],
  async run({ settings, output }) {
    const { catalogs: path, database } = settings
    if (path === undefined)
      throw new UsageError('There is no file of catalogs: give --catalogs.', { command: 'catalogs check' })
    const checked = await (await import('./check-catalogs.ts')).checkEach(path, database)
    const rows = checked.map(({ catalog, type, ok, namespaces, error }) => [
      plain(catalog),
      type,
      ok ? output.style('green', 'ok') : output.style('red', 'fail'),
      ok ? `${namespaces} namespaces` : plain(error ?? ''),
    ])
    output.answer(checked, () => table(['CATALOG', 'TYPE', 'STATE', 'FOUND'], rows))
    return checked.every(({ ok }) => ok) ? 'ok' : 'failed'
  },
})
