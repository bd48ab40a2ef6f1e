import {
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { mutants } from '../../../../scripts/mutants/mutants.ts'
import { stripTypes } from '../../../../scripts/strip-types.mjs'

// Workers and their handlers run in processes of their own, and plain Node does not run TypeScript: the package is
// compiled to a folder where it looks as it does when it is installed, with the programs of these tests inside.

const root = fileURLToPath(new URL('../../', import.meta.url))
// As scripts/mutants/lane.mjs does for what runs in the tests' own process.
const mutant = mutants.find(({ name }) => name === process.env['FENCEPOST_MUTANT'])
const packages = fileURLToPath(new URL('../../../../node_modules', import.meta.url))

export interface BuiltEngine {
  directory: string
  remove(): void
}

export function buildEngine(): BuiltEngine {
  const directory = realpathSync(mkdtempSync(join(tmpdir(), 'fencepost-built-')))
  compile(join(root, 'src'), join(directory, 'dist'))
  compile(join(root, 'test/worker/programs'), join(directory, 'programs'))
  for (const name of ['package.json', 'migrations']) {
    cpSync(join(root, name), join(directory, name), { recursive: true })
  }
  symlinkSync(packages, join(directory, 'node_modules'))
  return { directory, remove: () => rmSync(directory, { recursive: true, force: true }) }
}

function compile(from: string, to: string): void {
  const names = readdirSync(from, { recursive: true, encoding: 'utf8' })
  for (const name of names.filter((name) => name.endsWith('.ts') && !name.endsWith('.test.ts'))) {
    const path = join(to, name.replace(/\.ts$/, '.js'))
    mkdirSync(dirname(path), { recursive: true })
    writeFileSync(path, stripTypes(name, sourceOf(join(from, name))))
  }
}

function sourceOf(path: string): string {
  const text = readFileSync(path, 'utf8')
  if (mutant === undefined || !path.endsWith(mutant.file)) return text
  const { find, replace } = mutant
  return typeof find === 'string' ? text.replaceAll(find, replace) : text.replace(find, replace)
}
