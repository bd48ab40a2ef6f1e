import { execFileSync } from 'node:child_process'

/** The processes that a process has started, and theirs. */
export function processesBelow(pid: number): number[] {
  const lines = execFileSync('ps', ['-A', '-o', 'pid=,ppid='], { encoding: 'utf8' }).trim().split('\n')
  const parents = lines.map((line) => line.trim().split(/\s+/).map(Number))
  const below = (of: number): number[] =>
    parents.flatMap(([child = 0, parent]) => (parent === of ? [child, ...below(child)] : []))
  return below(pid)
}
