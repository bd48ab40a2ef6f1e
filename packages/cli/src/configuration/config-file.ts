import { existsSync, readFileSync } from 'node:fs'
import { basename, join, resolve } from 'node:path'
import { UsageError } from '../failure.ts'
import { importFile } from '../import-file.ts'
import { oneOf } from './value.ts'
import { settings, settingNames } from './settings.ts'

/** A configuration file that was read. */
export interface ConfigFile {
  /** How it is named to the user. */
  name: string
  values: Readonly<Record<string, unknown>>
}

const configFileNames = ['fencepost.config.ts', 'fencepost.config.json'] as const

/** The configuration file that was asked for, or the one of the directory; undefined where there is none. */
export async function readConfigFile(directory: string, given: string | undefined): Promise<ConfigFile | undefined> {
  const path = given === undefined ? findConfigFile(directory) : resolve(directory, given)
  if (path === undefined) return undefined
  const name = given ?? basename(path)
  if (!existsSync(path)) throw new UsageError(`There is no configuration file ${name}.`)
  const values = path.endsWith('.json') ? readJson(path, name) : await readModule(path, name)
  if (typeof values !== 'object' || values === null || Array.isArray(values)) {
    throw new UsageError(`${name} holds no object of settings.`)
  }
  const unknown = Object.keys(values).filter((key) => !Object.hasOwn(settings, key) && key !== '$schema')
  if (unknown.length > 0) {
    throw new UsageError(`${name} has ${unknown.join(', ')}, which is no setting; settings are ${oneOf(settingNames)}.`)
  }
  return { name, values: values as Record<string, unknown> }
}

function findConfigFile(directory: string): string | undefined {
  const found = configFileNames.filter((name) => existsSync(join(directory, name)))
  if (found.length > 1) throw new UsageError(`There are ${found.join(' and ')}; keep one of them.`)
  return found[0] === undefined ? undefined : join(directory, found[0])
}

function readJson(path: string, name: string): unknown {
  try {
    return JSON.parse(readFileSync(path, 'utf8'))
  } catch (error) {
    throw new UsageError(`${name} is not JSON: ${(error as Error).message}.`, { cause: error })
  }
}

async function readModule(path: string, name: string): Promise<unknown> {
  try {
    const { default: values } = await importFile(path)
    return values
  } catch (error) {
    throw new UsageError(`${name} cannot be loaded: ${(error as Error).message}`, { cause: error })
  }
}
