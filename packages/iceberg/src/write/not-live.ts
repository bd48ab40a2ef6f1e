import { tableName, type LoadedTable } from '../catalogs/catalog.ts'
import { IcebergError } from '../errors.ts'

/** How many paths a message names. */
const named = 5

/** Files that a change needs are not part of the branch, or no longer: another commit may have come first. */
export function notLive({ identifier }: LoadedTable, files: readonly string[]): IcebergError {
  const table = tableName(identifier)
  const more = files.length > named ? ` and ${files.length - named} more` : ''
  const verb = files.length === 1 ? 'is' : 'are'
  return new IcebergError(
    'file_not_live',
    `${files.slice(0, named).join(', ')}${more} ${verb} not among the files of ${table}, or no longer: another commit may ` +
      'have rewritten or removed them. Nothing was changed; look at the table again.',
    { details: { table, file: files[0], files } },
  )
}
