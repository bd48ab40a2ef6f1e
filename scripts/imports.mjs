// @ts-check
// Reads the imports of every package, types included, and fails if folders of one import each other in a circle,
// or import one another where they must not.
//   node scripts/imports.mjs                  checks every package
//   node scripts/imports.mjs --draw iceberg   writes the import map of a package to docs/imports/iceberg.md
// A file in the root of src/ stands for itself; tests are left out.
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join, posix, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseSync, Visitor } from 'rolldown/utils'

/**
 * Imports that close a circle and are tolerated, each with its reason. The list must only get shorter.
 * @type {Record<string, Record<string, string>>}
 */
const allowed = {
  'packages/engine': {
    'lifecycle → read': 'a delete returns the job as it is read elsewhere',
    'operation.ts → attempt': 'a type: the handler of an operation is given its attempt',
    'telemetry.ts → attempt': 'a type: how an attempt was settled',
    'wake.ts → worker': 'a type: the port of wake-ups is in the folder of the worker; to be moved below both',
    'worker → engine.ts': 'a type: a worker works for an engine, which has work()',
    'worker/isolated → worker': 'a handler process runs what the worker runs in its own process',
  },
}

/**
 * Folders that never import one another, though that would make no circle: what two of them need belongs below both.
 * @type {Record<string, string[]>}
 */
const apart = {
  'packages/iceberg': ['scan', 'write', 'facts'],
}

/** @typedef {Map<string, Map<string, string[]>>} Graph for each folder those it imports, and the imports that do */

const root = fileURLToPath(new URL('..', import.meta.url))
const drawn = process.argv[2] === '--draw' ? process.argv[3] : undefined
if (process.argv[2] === '--draw' && drawn === undefined)
  throw new Error('usage: node scripts/imports.mjs --draw <package>')
if (drawn !== undefined) draw(drawn)
else if (!packages().map(check).every(Boolean)) process.exitCode = 1

function packages() {
  return ['packages', 'examples'].flatMap((parent) =>
    readdirSync(join(root, parent)).map((name) => `${parent}/${name}`),
  )
}

/**
 * Returns whether the package has no circle that is not allowed.
 * @param {string} path
 */
function check(path) {
  const graph = read(path)
  for (const edge of Object.keys(allowed[path] ?? {})) {
    const [from = '', to = ''] = edge.split(' → ')
    if (!graph.get(from)?.delete(to))
      console.log(`${path}: ${edge} is gone, and can be removed from scripts/imports.mjs`)
  }
  const circles = circlesOf(graph)
  for (const circle of circles) {
    console.error(`${path}: these import each other in a circle: ${circle.join(', ')}`)
    for (const from of circle) {
      for (const [to, imports] of graph.get(from) ?? []) {
        if (circle.includes(to))
          console.error(`  ${from} → ${to} (${imports.length}): ${imports.slice(0, 4).join('; ')}`)
      }
    }
  }
  return circles.length === 0 && areApart(path, graph)
}

/**
 * @param {string} path
 * @param {Graph} graph
 */
function areApart(path, graph) {
  const folders = apart[path] ?? []
  const meetings = folders.flatMap((from) => folders.flatMap((to) => graph.get(from)?.get(to) ?? []))
  for (const meeting of meetings) console.error(`${path}: ${meeting}, but ${folders.join(', ')} never do`)
  return meetings.length === 0
}

/**
 * @param {string} path of a package
 * @returns {Graph}
 */
function read(path) {
  const source = join(root, path, 'src')
  const files = readdirSync(source, { recursive: true, encoding: 'utf8' })
    .map((name) => name.split('\\').join('/'))
    .filter((name) => name.endsWith('.ts') && !name.endsWith('.test.ts'))
    .sort()
  /** @type {Graph} */
  const graph = new Map()
  for (const file of files) {
    for (const imported of importsOf(file, readFileSync(join(source, file), 'utf8'))) {
      if (imported.startsWith('.')) add(graph, file, posix.join(posix.dirname(file), imported))
    }
  }
  return graph
}

/**
 * What a file imports, exports from others included, and types.
 * @param {string} file
 * @param {string} code
 */
function importsOf(file, code) {
  /** @type {string[]} */
  const found = []
  /** @param {{ source: import('rolldown/utils').ESTree.Expression | null }} node */
  const add = ({ source }) => {
    if (source?.type === 'Literal' && typeof source.value === 'string') found.push(source.value)
  }
  new Visitor({
    ImportDeclaration: add,
    ExportNamedDeclaration: add,
    ExportAllDeclaration: add,
    ImportExpression: add,
    TSImportType: add,
  }).visit(parseSync(file, code).program)
  return found
}

/**
 * @param {Graph} graph
 * @param {string} file
 * @param {string} imported
 */
function add(graph, file, imported) {
  const [from, to] = [place(file), place(imported)]
  if (from === to || imported.startsWith('..')) return
  const out = graph.get(from) ?? new Map()
  graph.set(from, out.set(to, [...(out.get(to) ?? []), `${file} imports ${imported}`]))
}

/**
 * The folder of a file, or the file itself in the root.
 * @param {string} file
 */
function place(file) {
  const folder = posix.dirname(file)
  return folder === '.' ? file : folder
}

/**
 * The strongly connected components of more than one folder.
 * @param {Graph} graph
 */
function circlesOf(graph) {
  const reached = new Map([...graph.keys()].map((from) => [from, reachable(graph, from)]))
  /** @type {string[][]} */
  const circles = []
  for (const [from, all] of reached) {
    if (!all.has(from) || circles.some((circle) => circle.includes(from))) continue
    circles.push([...all].filter((other) => reached.get(other)?.has(from)))
  }
  return circles
}

/**
 * @param {Graph} graph
 * @param {string} from
 */
function reachable(graph, from) {
  /** @type {Set<string>} */
  const seen = new Set()
  const queue = [from]
  for (let next = queue.pop(); next !== undefined; next = queue.pop()) {
    for (const to of graph.get(next)?.keys() ?? []) {
      if (!seen.has(to)) queue.push(to)
      seen.add(to)
    }
  }
  return seen
}

/**
 * An arrow that other arrows already imply is left out: the map shows the order, not every import.
 * @param {string} name
 */
function draw(name) {
  const graph = read(`packages/${name}`)
  const lines = [...graph].flatMap(([from, out]) =>
    [...out.keys()]
      .filter((to) => ![...out.keys()].some((other) => other !== to && implies(graph, other, to)))
      .sort()
      .map((to) => `  ${node(from)} --> ${node(to)}`),
  )
  const rows = [...graph].map(([from, out]) => `| ${from} | ${[...out.keys()].sort().join(', ')} |`)
  const target = join(root, `docs/imports/${name}.md`)
  mkdirSync(dirname(target), { recursive: true })
  writeFileSync(
    target,
    `# Imports of packages/${name}

Drawn by \`node scripts/imports.mjs --draw ${name}\`. Each folder of \`src/\`, and each file in its root, with what it
imports, types included; tests are left out. The map leaves out an arrow that others already imply.

\`\`\`mermaid
flowchart TD
${lines.join('\n')}
\`\`\`

| folder | imports |
|---|---|
${rows.join('\n')}
`,
  )
  console.log(`wrote ${relative(root, target)}`)
}

/**
 * Whether what `to` offers comes with `other` anyway. In a circle neither implies the other.
 * @param {Graph} graph
 * @param {string} other
 * @param {string} to
 */
function implies(graph, other, to) {
  return reachable(graph, other).has(to) && !reachable(graph, to).has(other)
}

/** @param {string} place */
function node(place) {
  return `${place.replace(/\W/g, '_')}["${place}"]`
}
