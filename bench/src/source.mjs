// @ts-check
import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('../..', import.meta.url))
const enginePath = 'packages/engine'
/** Written by the bench itself, so a run in parts does not count them as changes. */
const writtenByBench = ['bench/results', 'bench/README.md']

/**
 * Which state of the code is measured: the commit, and the tree of the engine alone, which a commit of docs does not
 * change. Without git nothing is known, which counts as changed.
 */
export function source() {
  const commit = git('rev-parse', 'HEAD') ?? null
  const isDirty = (...paths) => git('status', '--porcelain', '--', ...paths) !== ''
  return {
    commit,
    dirty: isDirty('.', ...writtenByBench.map((path) => `:!${path}`)),
    engine: { tree: git('rev-parse', `HEAD:${enginePath}`) ?? null, dirty: isDirty(enginePath) },
  }
}

function git(...args) {
  const { status, stdout } = spawnSync('git', args, { cwd: root, encoding: 'utf8' })
  return status === 0 ? stdout.trim() : undefined
}
