import {
  tableName,
  type Catalog,
  type LoadedTable,
  type Namespace,
  type TableIdentifier,
} from '../../catalogs/catalog.ts'
import { forEachLimited } from '../../storage/each.ts'
import { below, locationKey, parseLocation } from '../../storage/location.ts'
import { insideAny, ownLocations } from '../own-locations.ts'
import { refused } from '../refuse.ts'

// Which folder may be searched for orphans: one of the table's own, that no other table has files in.

/** For messages. */
export const action = 'Removing orphan files'

/** Refuses the root of a bucket or disk, and folders that are not the table's own. */
export function assertListable(table: LoadedTable, location: string): void {
  const parsed = parseLocation(location)
  const path = parsed.scheme === 's3' ? parsed.key : parsed.path
  if (path.replaceAll('/', '') === '') {
    const message = `${location} is the root of ${parsed.scheme === 's3' ? 'a bucket' : 'a disk'}, which others use too. Move the table to a folder of its own.`
    throw refused(action, table, 'location_root', message, { location })
  }
  if (insideAny(ownLocations(table.metadata))(below(location, 'x'))) return
  const message = `${location} is outside the folders of the table. Files there may belong to others.`
  throw refused(action, table, 'location_outside', message, { location })
}

export interface TablesChecked {
  /** Tables of the catalog whose locations were compared. */
  readonly tables: number
  /** Whether those are all there are. */
  readonly isComplete: boolean
}

/** Refuses a folder that another table has files in, or that is in the folder of another. */
export async function assertUnshared(
  catalog: Catalog,
  table: LoadedTable,
  location: string,
  options: {
    readonly otherLocations?: readonly string[] | undefined
    readonly maxTablesChecked?: number | undefined
    readonly signal?: AbortSignal | undefined
  },
): Promise<TablesChecked> {
  const { otherLocations = [], maxTablesChecked = 500, signal } = options
  for (const other of otherLocations) assertApart(table, location, other, 'another table')
  const { tables, isComplete } = await tablesOf(catalog, table.identifier, maxTablesChecked)
  let unknown = 0
  await forEachLimited(tables, 8, async (identifier) => {
    signal?.throwIfAborted()
    const other = await catalog.loadTable(identifier, signal === undefined ? {} : { signal }).catch(() => undefined)
    // A table that cannot be loaded does not say where it is.
    if (other === undefined) unknown += 1
    else for (const folder of ownLocations(other.metadata)) assertApart(table, location, folder, tableName(identifier))
  })
  return { tables: tables.length - unknown, isComplete: isComplete && unknown === 0 }
}

function assertApart(table: LoadedTable, location: string, other: string, name: string): void {
  if (!overlap(location, other)) return
  const message = `${location} overlaps with ${other}, where ${name} has its files. Give each table a folder of its own.`
  throw refused(action, table, 'location_shared', message, { location, other, otherTable: name })
}

function overlap(a: string, b: string): boolean {
  try {
    const [one, two] = [`${locationKey(a).replace(/\/+$/, '')}/`, `${locationKey(b).replace(/\/+$/, '')}/`]
    return one.startsWith(two) || two.startsWith(one)
  } catch {
    return false // in a storage that is not used here
  }
}

/** The other tables of a catalog, those of the same namespace first. */
async function tablesOf(
  catalog: Catalog,
  own: TableIdentifier,
  max: number,
): Promise<{ tables: TableIdentifier[]; isComplete: boolean }> {
  const tables: TableIdentifier[] = []
  if (max === 0) return { tables, isComplete: false }
  const isOwnNamespace = (namespace: Namespace): boolean => namespace.join('\0') === own.namespace.join('\0')
  const add = async (namespace: Namespace): Promise<boolean> => {
    for (const identifier of await catalog.listTables(namespace)) {
      if (isOwnNamespace(identifier.namespace) && identifier.name === own.name) continue
      if (tables.length >= max) return false
      tables.push(identifier)
    }
    return true
  }
  const waiting: Namespace[] = []
  if (!(await add(own.namespace))) return { tables, isComplete: false }
  waiting.push(...(await catalog.listNamespaces()))
  for (let namespace = waiting.pop(); namespace !== undefined; namespace = waiting.pop()) {
    if (!isOwnNamespace(namespace) && !(await add(namespace))) return { tables, isComplete: false }
    waiting.push(...(await catalog.listNamespaces(namespace)))
  }
  return { tables, isComplete: true }
}
