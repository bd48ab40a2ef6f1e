// @ts-check
import { readdir, readFile } from 'node:fs/promises'
import { stripTypes } from '../strip-types.mjs'

/** @typedef {import('./mutant.ts').Mutant} Mutant */

/**
 * Every mutant of the files named *-mutants.ts.
 * @returns {Promise<Mutant[]>}
 */
export async function loadMutants() {
  const names = (await readdir(new URL('./', import.meta.url))).filter((name) => name.endsWith('-mutants.ts'))
  const lists = names.sort().map(async (name) => {
    const source = await readFile(new URL(name, import.meta.url), 'utf8')
    const { mutants } = await import(`data:text/javascript,${encodeURIComponent(stripTypes(name, source))}`)
    return mutants
  })
  return (await Promise.all(lists)).flat()
}

/**
 * The source with its fault.
 * @param {Mutant} mutant
 * @param {string} code
 */
export function mutate({ name, file, find, replace }, code) {
  const broken = typeof find === 'string' ? code.replaceAll(find, replace) : code.replace(find, replace)
  if (broken === code) throw new Error(`Mutant "${name}": its text is not in ${file}`)
  return broken
}
