// @ts-check
import { transformSync } from 'rolldown/utils'

/**
 * A TypeScript file as plain Node runs it: without its types, and with imports of .ts files as .js.
 * @param {string} path
 * @param {string} source
 */
export function stripTypes(path, source) {
  const typescript = { rewriteImportExtensions: true, onlyRemoveTypeImports: true }
  const { code, errors } = transformSync(path, source, { target: 'es2023', typescript })
  if (errors.length > 0)
    throw new Error(`${path} cannot be compiled: ${errors.map(({ message }) => message).join('; ')}`)
  return code
}
