// @ts-check
import { existsSync, readFileSync } from 'node:fs'
import { Refusal } from './refusal.mjs'

/** What two parts of one result must have in common, by what it is called in a refusal. */
const aspects = {
  'engine source': ({ engine }) => engine?.tree,
  'number of runs': ({ runs }) => runs,
  sizes: ({ sizes }) => sizes,
  systems: ({ systems }) => systems.map(({ name, version }) => [name, version]),
  settings: ({ settings }) => settings,
  Postgres: ({ versions }) => versions.postgres,
  Node: ({ machine }) => machine.node,
  processor: ({ machine }) => [machine.cpu, machine.cores],
}

/** An earlier result; undefined when the file is not there yet. */
export function readResult(file) {
  if (!existsSync(file)) return undefined
  try {
    const result = JSON.parse(readFileSync(file, 'utf8'))
    if (Array.isArray(result.rows) && Array.isArray(result.systems)) return result
  } catch (error) {
    throw new Refusal(`${file} cannot be read as a result of the bench.`, { cause: error })
  }
  throw new Refusal(`${file} is no result of the bench.`)
}

/** The result to add to, if it is there; throws a Refusal when the two would not be one. */
export function earlierAlike(file, begun) {
  // A tree hash says nothing of what is not committed, so parts of two such states could not be told apart.
  if (begun.engine.dirty)
    throw new Refusal('--add-to: packages/engine has changes that are not committed; commit them.')
  const earlier = readResult(file)
  if (earlier === undefined) return undefined
  const differing = Object.entries(aspects)
    .filter(([, of]) => JSON.stringify(of(earlier)) !== JSON.stringify(of(begun)))
    .map(([name]) => name)
  if (differing.length === 0) return earlier
  throw new Refusal(`--add-to: ${file} was measured with other ${differing.join(', ')}; give another file.`)
}
