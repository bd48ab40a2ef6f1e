import { IcebergError } from '../errors.ts'
import { below, fileName } from '../storage/location.ts'
import type { Storage } from '../storage/storage.ts'

// The versions of a table in folders are `metadata/v1.metadata.json`, `v2…` and so on; the highest is the current one.
// `version-hint.text` names one of the latest, to begin looking at. It may be missing, old or damaged.

const hintName = 'version-hint.text'
// As Java writes them, and as it did long ago.
const extensions = ['.metadata.json', '.gz.metadata.json', '.metadata.json.gz']
const versionPattern = /^v(\d+)(\.metadata\.json|\.gz\.metadata\.json|\.metadata\.json\.gz)$/

export interface Version {
  readonly number: number
  readonly extension: string
  readonly location: string
}

export function metadataFolder(table: string): string {
  return below(table, 'metadata')
}

/** The number and the ending of a metadata file's name. */
export function versionAt(location: string): Version {
  const match = versionPattern.exec(fileName(location))
  if (match === null) {
    throw new IcebergError(
      'catalog_invalid',
      `${location} is not a metadata file of a table in folders (v1.metadata.json).`,
    )
  }
  return { number: Number(match[1]), extension: match[2] ?? '', location }
}

/** The version that a listed file is; undefined of others, such as `.v2.metadata.json.<uuid>.tmp` of a killed writer. */
export function versionIn(folder: string, location: string): Version | undefined {
  const match = versionPattern.exec(location.slice(folder.length + 1))
  return match === null ? undefined : { number: Number(match[1]), extension: match[2] ?? '', location }
}

/** The current version; undefined when the folder holds no table. */
export async function currentVersion(storage: Storage, table: string): Promise<Version | undefined> {
  const hinted = await hintedVersion(storage, table)
  let version = (await find(storage, table, hinted)) ?? (await highestListed(storage, table))
  // The hint is written after the version, so there may be more of them.
  for (let next = version; next !== undefined; next = await find(storage, table, next.number + 1)) version = next
  return version
}

async function hintedVersion(storage: Storage, table: string): Promise<number> {
  try {
    const text = new TextDecoder().decode(await storage.read(below(metadataFolder(table), hintName)))
    return /^\s*\d{1,9}\s*$/.test(text) ? Number(text) : 0
  } catch (error) {
    if (error instanceof IcebergError && error.code === 'storage_not_found') return 0
    throw error
  }
}

async function find(storage: Storage, table: string, number: number): Promise<Version | undefined> {
  if (number <= 0) return undefined
  for (const extension of extensions) {
    const location = below(metadataFolder(table), `v${number}${extension}`)
    if (await storage.exists(location)) return { number, extension, location }
  }
  return undefined
}

async function highestListed(storage: Storage, table: string): Promise<Version | undefined> {
  const folder = metadataFolder(table)
  let highest: Version | undefined
  for await (const { location } of storage.list(folder)) {
    const version = versionIn(folder, location)
    if (version !== undefined && version.number > (highest?.number ?? 0)) highest = version
  }
  return highest
}

/** Best effort: readers look for later versions anyway. Never fails. */
export async function writeHint(storage: Storage, table: string, number: number): Promise<void> {
  try {
    await storage.write(below(metadataFolder(table), hintName), Buffer.from(String(number)))
  } catch {
    // The old one still leads to the same version.
  }
}
