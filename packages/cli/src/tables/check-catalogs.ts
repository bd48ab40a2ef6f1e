import { Catalogs } from '@fencepost/maintenance'
import { readCatalogs } from '../service/maintenance.ts'

export interface CheckedCatalog {
  catalog: string
  type: string
  ok: boolean
  namespaces: number
  error: string | null
}

/** Opens each catalog of a file. What is wrong with one is part of the answer. */
export async function checkEach(path: string, database: string | undefined): Promise<CheckedCatalog[]> {
  const catalogs = new Catalogs(await readCatalogs(path), database)
  try {
    return await Promise.all(
      catalogs.names.map(async (name) => {
        const about = { catalog: name, type: catalogs.typeOf(name) ?? '' }
        try {
          const { catalog } = await catalogs.open(name)
          return { ...about, ok: true, namespaces: (await catalog.listNamespaces()).length, error: null }
        } catch (error) {
          return { ...about, ok: false, namespaces: 0, error: error instanceof Error ? error.message : String(error) }
        }
      }),
    )
  } finally {
    await catalogs.close()
  }
}
