import fc from 'fast-check'
import { expect } from 'vitest'
import { findSnapshot, type Table } from '../../../src/index.ts'
import { append, contentFile, dataPath, dayMs, type Lake } from '../lake.ts'
import type { Inspector } from './sound.ts'

// A table whose files hold nothing, for actions that do not read them. The model is what files each snapshot had.

const kinds = ['append', 'append', 'append', 'delete-positions', 'delete-file', 'branch', 'tag', 'drop', 'set'] as const

export const anyFileStep = fc.record({ do: fc.constantFrom(...kinds), pick: fc.nat(30), branch: fc.nat(5) })
export type FileStep = typeof anyFileStep extends fc.Arbitrary<infer T> ? T : never

const at = <T>(items: readonly T[], index: number): T | undefined => items[index % Math.max(1, items.length)]

export class FileHistory {
  readonly #lake: Lake
  readonly #inspector: Inspector
  readonly #files = new Map<bigint, string[]>()
  #names = 0

  constructor(lake: Lake, inspector: Inspector) {
    this.#lake = lake
    this.#inspector = inspector
  }

  get table(): Table {
    return this.#lake.table
  }

  async change({ do: what, pick, branch }: FileStep): Promise<void> {
    await this.refresh()
    const { table } = this
    const { refs, snapshots } = table.metadata
    const on = at([...refs].filter(([, { type }]) => type === 'branch').map(([name]) => name), branch) ?? 'main' // prettier-ignore
    const some = at(snapshots, pick)?.snapshotId
    const name = `n${(this.#names += 1)}`
    if (what === 'append' || some === undefined) await append(this.#lake, name, { branch: on })
    else if (what === 'delete-file') await table.deleteFiles(await this.#dataFile(on, pick), { branch: on })
    else if (what === 'delete-positions') await this.#deletePositions(name, on, pick)
    else if (what === 'branch') await table.createBranch(name, { snapshotId: some })
    else if (what === 'tag') {
      await table.createTag(name, { snapshotId: some, ...(pick % 3 === 0 && { maxRefAgeMs: BigInt(10 * dayMs) }) })
    } else if (what === 'drop') {
      const others = [...refs.keys()].filter((ref) => ref !== 'main')
      const ref = at(others, pick)
      if (ref !== undefined) await table.dropRef(ref)
    } else await table.setSnapshot(some, { branch: on })
    for (const { snapshotId } of table.metadata.snapshots) {
      if (!this.#files.has(snapshotId)) this.#files.set(snapshotId, await this.#filesAt(snapshotId))
    }
  }

  async #dataFile(branch: string, pick: number): Promise<string[]> {
    const snapshotId = this.table.metadata.refs.get(branch)?.snapshotId
    if (snapshotId === undefined) return []
    const { entries } = await this.#inspector.entriesAt(this.table.loaded, snapshotId)
    const file = at(entries.filter(({ file: { content } }) => content === 'data'), pick)?.file // prettier-ignore
    return file === undefined ? [] : [file.filePath]
  }

  async #deletePositions(name: string, branch: string, pick: number): Promise<void> {
    const [referencedDataFile] = await this.#dataFile(branch, pick)
    if (referencedDataFile === undefined || this.table.metadata.formatVersion !== 2) return
    const path = dataPath(this.table, name)
    await this.#lake.storage.write(path, Buffer.from('file'))
    await this.table.appendFiles([contentFile(path, { content: 'position-deletes', referencedDataFile })], { branch })
  }

  /** What an action added holds what was before it. */
  async refresh(): Promise<void> {
    await this.table.refresh()
    for (const { snapshotId, parentSnapshotId } of this.table.metadata.snapshots) {
      if (this.#files.has(snapshotId)) continue
      const parent = parentSnapshotId === undefined ? undefined : this.#files.get(parentSnapshotId)
      if (parent === undefined) throw new Error(`the model cannot know snapshot ${snapshotId}`)
      this.#files.set(snapshotId, parent)
    }
  }

  async check(): Promise<void> {
    await this.refresh()
    const { metadata } = this.table
    for (const { snapshotId } of metadata.snapshots) {
      expect(await this.#filesAt(snapshotId), String(snapshotId)).toEqual(this.#files.get(snapshotId))
    }
    for (const [name, { snapshotId }] of metadata.refs) expect(findSnapshot(metadata, snapshotId), name).toBeDefined()
  }

  async #filesAt(snapshotId: bigint): Promise<string[]> {
    const { entries } = await this.#inspector.entriesAt(this.table.loaded, snapshotId)
    return entries
      .map(({ file, sequenceNumber, snapshotId: addedBy }) => [file.filePath, sequenceNumber, addedBy].join(' '))
      .toSorted()
  }
}
