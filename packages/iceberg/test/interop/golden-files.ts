import { cp, mkdir, readFile, rm } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Engine, ReadTable } from './engines.ts'

const folder = fileURLToPath(new URL('../goldens', import.meta.url))

/** A golden table: who wrote it, and the rows that must be found in it. See test/goldens/README.md. */
export interface Golden extends ReadTable {
  readonly about: string
  readonly writer: 'spark' | 'pyiceberg'
  readonly versions: Readonly<Record<string, string>>
  /** Where its metadata says that it is. */
  readonly location: string
  /** Its newest metadata file, from the location. */
  readonly metadata: string
  /** Whose rows these are, who found the same, and who did not, with the reason. */
  readonly read_by: Engine
  readonly agreed_by: readonly Engine[]
  readonly not_read_by: Readonly<Partial<Record<Engine, string>>>
}

export async function readGolden(name: string): Promise<Golden> {
  return JSON.parse(await readFile(join(folder, name, 'expected.json'), 'utf8')) as Golden
}

/** Puts a golden table where its metadata says that it is, for readers that go by that; gives what takes it away. */
export async function placeGolden(name: string): Promise<() => Promise<void>> {
  const { location } = await readGolden(name)
  await mkdir(dirname(location), { recursive: true })
  await rm(location, { recursive: true, force: true })
  await cp(join(folder, name), location, { recursive: true })
  return async () => rm(location, { recursive: true, force: true })
}
