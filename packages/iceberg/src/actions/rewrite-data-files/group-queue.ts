import type { LiveGroup, WantedGroup } from './live-group.ts'
import type { RewriteGroup } from './plan.ts'

/** A group that was in conflict so often is given up. */
const maxConflicts = 6

/**
 * The groups that are still to be rewritten. One that another commit was in the way of comes again, and from its second
 * conflict on in halves: the smaller it is, the less is in its way.
 */
export class GroupQueue {
  #groups: readonly WantedGroup[]
  #at = 0
  /** For the next round: they must be read from another snapshot. */
  readonly #next: WantedGroup[] = []

  constructor(groups: readonly RewriteGroup[]) {
    this.#groups = groups.map(({ number, files }) => ({ number, paths: files.map(({ path }) => path), conflicts: 0 }))
  }

  get size(): number {
    return this.#groups.length - this.#at
  }

  /** Groups with so many paths together; always one, if there is one. */
  take(maxPaths: number): WantedGroup[] {
    const taken: WantedGroup[] = []
    let paths = 0
    for (let next = this.#groups[this.#at]; next !== undefined; next = this.#groups[this.#at]) {
      paths += next.paths.length
      if (taken.length > 0 && paths > maxPaths) break
      taken.push(next)
      this.#at += 1
    }
    return taken
  }

  /** Puts a group back; false when it has been in conflict too often. */
  again({ number, files, conflicts: before }: LiveGroup): boolean {
    const conflicts = before + 1
    const paths = files.map(({ file }) => file.filePath)
    if (conflicts >= maxConflicts) return false
    const half = Math.ceil(paths.length / 2)
    const parts = conflicts < 2 || paths.length < 2 ? [paths] : [paths.slice(0, half), paths.slice(half)]
    for (const part of parts) this.#next.push({ number, paths: part, conflicts })
    return true
  }

  /** Begins the next round, with what was put back. */
  release(): void {
    this.#groups = [...this.#groups.slice(this.#at), ...this.#next.splice(0)]
    this.#at = 0
  }
}
