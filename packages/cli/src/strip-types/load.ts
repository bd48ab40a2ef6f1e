import { readFile } from 'node:fs/promises'
import type { LoadHook } from 'node:module'
import { fileURLToPath } from 'node:url'
import { transform } from '@swc/wasm-typescript'

/** A hook of Node's module loader: TypeScript loses its types, and keeps its lines and columns. */
export const load: LoadHook = async (url, context, nextLoad) => {
  if (!/^file:.*\.m?ts$/.test(url)) return nextLoad(url, context)
  const filename = fileURLToPath(url)
  try {
    const { code } = await transform(await readFile(filename, 'utf8'), { mode: 'strip-only', module: true, filename })
    return { format: 'module', source: code, shortCircuit: true }
  } catch (error) {
    // The stripper throws plain objects.
    const { message } = error as { message?: string }
    throw new SyntaxError(`${filename}: ${message ?? String(error)}`, { cause: error })
  }
}
