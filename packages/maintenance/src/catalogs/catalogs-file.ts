import { readFile } from 'node:fs/promises'
import { dirname, isAbsolute, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { z } from 'zod'
import { isName } from './address.ts'

const properties = z.record(z.string(), z.string()).default({}).describe('Iceberg’s properties of the storage.')
const text = z.string().min(1)

const jdbc = z.strictObject({
  type: z.literal('jdbc'),
  database: text.optional().describe('The Postgres that holds the catalog; the one of the jobs if left out.'),
  warehouse: text,
  catalog_name: text.optional().describe('What other engines call the catalog; its name here if left out.'),
  properties,
})
const rest = z.strictObject({
  type: z.literal('rest'),
  url: text,
  warehouse: text.optional(),
  token: text.optional(),
  properties,
  headers: z.record(z.string(), z.string()).optional(),
  timeout_ms: z.int().min(1).optional(),
})
const files = z.strictObject({
  type: z.literal('files'),
  warehouse: text.describe('A folder or a location.'),
  properties,
  write_to_object_store: z.boolean().optional(),
})

export const catalogConfig = z.discriminatedUnion('type', [jdbc, rest, files])
export type CatalogConfig = z.output<typeof catalogConfig>

const catalogsConfig = z.strictObject({
  default: text.optional().describe('The catalog that addresses without one mean; the first if left out.'),
  catalogs: z.record(z.string(), catalogConfig),
})

/** The catalogs of a process, by name. */
export interface CatalogsConfig {
  readonly default: string
  readonly catalogs: Readonly<Record<string, CatalogConfig>>
}

/** A file of catalogs that cannot be used; the message says why. */
export class CatalogsConfigError extends Error {
  readonly code = 'catalogs_invalid'
}

/** Reads the file that describes the catalogs. */
export async function readCatalogsFile(
  path: string,
  env: Readonly<Record<string, string | undefined>> = process.env,
): Promise<CatalogsConfig> {
  let parsed: unknown
  try {
    parsed = JSON.parse(await readFile(path, 'utf8'))
  } catch (error) {
    throw new CatalogsConfigError(`${path} cannot be read as JSON: ${(error as Error).message}.`, { cause: error })
  }
  return checkCatalogs(parsed, { name: path, directory: dirname(resolve(path)), env })
}

/** Checks catalogs, with `${NAME}` in every text replaced by that variable of the environment. */
export function checkCatalogs(
  given: unknown,
  { name, directory, env }: { name: string; directory: string; env: Readonly<Record<string, string | undefined>> },
): CatalogsConfig {
  const parsed = catalogsConfig.safeParse(withVariables(given, name, env))
  if (!parsed.success) {
    const [issue] = parsed.error.issues
    throw new CatalogsConfigError(`${name} is not valid: ${issue?.path.join('.')}: ${issue?.message}.`)
  }
  const names = Object.keys(parsed.data.catalogs)
  const [first] = names
  if (first === undefined) throw new CatalogsConfigError(`${name} names no catalog.`)
  const wrong = names.find((one) => !isName(one))
  if (wrong !== undefined)
    throw new CatalogsConfigError(`${name}: ${JSON.stringify(wrong)} cannot be a catalog's name.`)
  const chosen = parsed.data.default ?? first
  if (!names.includes(chosen)) throw new CatalogsConfigError(`${name}: the default catalog ${chosen} is not described.`)
  const catalogs = Object.entries(parsed.data.catalogs).map(([one, config]) => [one, atHome(config, directory)])
  return { default: chosen, catalogs: Object.fromEntries(catalogs) as CatalogsConfig['catalogs'] }
}

// A path is relative to the file that names it.
function atHome(config: CatalogConfig, directory: string): CatalogConfig {
  if (config.type === 'rest' || /^[a-z][a-z0-9+.-]*:/i.test(config.warehouse)) return config
  const path = isAbsolute(config.warehouse) ? config.warehouse : resolve(directory, config.warehouse)
  return { ...config, warehouse: pathToFileURL(path).href }
}

function withVariables(value: unknown, name: string, env: Readonly<Record<string, string | undefined>>): unknown {
  if (typeof value === 'string') {
    return value.replaceAll(/\$\{([A-Za-z_][A-Za-z0-9_]*)\}/g, (_, variable: string) => {
      const found = env[variable]
      if (found === undefined)
        throw new CatalogsConfigError(`${name} needs the variable ${variable}, which is not set.`)
      return found
    })
  }
  if (Array.isArray(value)) return value.map((one) => withVariables(one, name, env))
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, withVariables(one, name, env)]))
}
