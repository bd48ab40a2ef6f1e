import { register } from 'node:module'
import { pathToFileURL } from 'node:url'

// Node strips types by itself from 22.18 on. Before, a loader does, with the stripper that Node has built in since: so
// what can be written in such a file is the same everywhere.

let stripping = false

/** Imports a module by its path, TypeScript too. */
export async function importFile(path: string): Promise<Record<string, unknown>> {
  if (/\.m?ts$/.test(path)) stripTypes()
  return (await import(pathToFileURL(path).href)) as Record<string, unknown>
}

function stripTypes(): void {
  if (stripping || (process.features as { typescript?: unknown }).typescript) return
  stripping = true
  const loader = new URL('./strip-types/register.js', import.meta.url).href
  register('./strip-types/load.js', import.meta.url)
  // Processes of isolated handlers import the same modules, and are started with what this one was started with.
  process.execArgv.push('--import', loader)
}
