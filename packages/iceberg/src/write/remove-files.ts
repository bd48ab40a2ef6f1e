import type { LoadedTable } from '../catalogs/catalog.ts'
import type { ContentFile } from '../manifests/content-file.ts'

/** Removes files that nothing refers to. Never fails: what stays is litter, and the error at hand is what counts. */
export async function removeFiles({ storage }: LoadedTable, files: readonly (string | ContentFile)[]): Promise<void> {
  const locations = files.map((file) => (typeof file === 'string' ? file : file.filePath))
  await storage.delete(locations).catch(() => {})
}
