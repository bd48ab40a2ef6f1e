// @ts-check
import { readFileSync, writeFileSync } from 'node:fs'
import { dirname, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { readResult } from './earlier.mjs'
import { Refusal } from './refusal.mjs'
import { judged } from './results.mjs'
import { markdownTable } from './table.mjs'

const readme = fileURLToPath(new URL('../README.md', import.meta.url))
const begin = '<!-- table -->'
const end = '<!-- /table -->'

/** Writes every row of a result between the two marks of the README; the README's path. */
export function writeTable(file) {
  const result = readResult(file)
  if (result === undefined) throw new Refusal(`There is no ${file}.`)
  const text = readFileSync(readme, 'utf8')
  const [from, to] = [text.indexOf(begin), text.indexOf(end)]
  if (from < 0 || to < from) throw new Refusal(`${readme} has no ${begin} … ${end} to write between.`)
  const shown = `${begin}\n\n${origin(file, result)}\n\n${markdownTable(judged(result.rows), result.systems)}\n\n`
  writeFileSync(readme, text.slice(0, from) + shown + text.slice(to))
  return readme
}

function origin(file, { date, machine, versions, measured, runs }) {
  const path = relative(dirname(readme), file)
  const { cpu, cores, memoryGb, node } = machine
  const commits = new Set(Object.values(measured ?? {}).map(({ commit }) => commit?.slice(0, 10)))
  const on = `${cores} cores of ${cpu}, ${memoryGb} GB, Postgres ${versions.postgres}, Node ${node}`
  const of = commits.size === 0 ? '' : `, commit ${[...commits].join(', ')}`
  return `${date.slice(0, 10)}, ${on}, median of ${runs}${of}: [${path}](${path}).`
}
