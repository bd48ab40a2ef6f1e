import type { TableHealth } from './health.ts'

/** A value as JSON has it: keys in snake_case, no undefined. */
export type HealthJson =
  string | number | boolean | null | readonly HealthJson[] | { readonly [key: string]: HealthJson }

/** The health of a table as the API answers it. */
export function healthToJson(health: TableHealth): { readonly [key: string]: HealthJson } {
  return toJson(health) as { readonly [key: string]: HealthJson }
}

function toJson(value: unknown): HealthJson {
  if (value === undefined || value === null) return null
  if (Array.isArray(value)) return value.map(toJson)
  if (typeof value === 'object') {
    return Object.fromEntries(Object.entries(value).map(([key, each]) => [snakeCase(key), toJson(each)]))
  }
  if (typeof value === 'string' || typeof value === 'boolean') return value
  return Number(value)
}

/** Names of options keep their dashes. */
function snakeCase(name: string): string {
  return name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)
}
