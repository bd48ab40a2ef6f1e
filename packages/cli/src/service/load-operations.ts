import { existsSync } from 'node:fs'
import { resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { Operation } from '@fencepost/engine'
import { UsageError } from '../failure.ts'
import { importFile } from '../import-file.ts'
import { operations as sampleOperations } from '../samples/operations.ts'

/** The operations of a process, and the module that processes of isolated handlers import them from. */
export interface LoadedOperations {
  operations: readonly Operation[]
  operationsModule?: URL
}

/** What --module names: the samples, or a module that exports `operations`. */
export async function loadOperations(module: string): Promise<LoadedOperations> {
  if (module === 'samples') return { operations: sampleOperations }
  const path = resolve(module)
  if (!existsSync(path)) throw new UsageError(`There is no module ${module}.`)
  const { operations } = await importModule(path, module)
  if (!Array.isArray(operations) || operations.length === 0 || !operations.every(isOperation)) {
    throw new UsageError(`${module} exports no array named operations, made by operation().`)
  }
  return { operations, operationsModule: pathToFileURL(path) }
}

async function importModule(path: string, module: string): Promise<Record<string, unknown>> {
  try {
    return await importFile(path)
  } catch (error) {
    throw new UsageError(`${module} cannot be loaded: ${(error as Error).message}`, { cause: error })
  }
}

function isOperation(value: unknown): value is Operation {
  const { name, run } = (value ?? {}) as Partial<Operation>
  return typeof name === 'string' && typeof run === 'function'
}
