import fc from 'fast-check'
import { expect } from 'vitest'
import {
  applyTransform,
  isUnpartitioned,
  partitionKey,
  partitionSpecOf,
  schemaOf,
  type Field,
  type Filter,
  type FormatVersion,
  type ScannedRow,
  type ScanOptions,
  type Table,
} from '../../src/index.ts'
import { filterOf, fulfils, type FilterShape } from '../scan/random-filters.ts'
import { evolveSchema, evolveSpec } from './evolve.ts'
import { asRow, filteredColumns, ids, makeRow, maxSeed, rowTexts, stateTexts, textOf, valueOf, without, type ModelRow, type State } from './model.ts' // prettier-ignore

const kinds = {
  append: 5,
  'delete-positions': 5,
  'delete-equal': 4,
  overwrite: 2,
  'delete-file': 1,
  'evolve-schema': 3,
  'evolve-spec': 2,
  branch: 1,
  tag: 1,
  rollback: 1,
  'set-snapshot': 1,
  'drop-ref': 1,
  upgrade: 1,
} as const
type Kind = keyof typeof kinds

/** What is done to a table. `branch` and `pick` choose among what is there. */
export const anyStep = fc.record({
  do: fc.oneof(...Object.entries(kinds).map(([kind, weight]) => ({ weight, arbitrary: fc.constant(kind as Kind) }))),
  branch: fc.nat(11),
  pick: fc.nat(11),
  seeds: fc.array(fc.nat(maxSeed), { minLength: 1, maxLength: 5 }),
  every: fc.integer({ min: 1, max: 3 }),
  flag: fc.boolean(),
})
export type Step = typeof anyStep extends fc.Arbitrary<infer T> ? T : never

/** Columns that rows are deleted by. */
const keys: readonly (readonly number[])[] = [[ids.id], [ids.p], [ids.s], [ids.id, ids.p], [ids.p, ids.s], [ids.day]]

/** A table and a model of it, changed alike. */
export class History {
  readonly table: Table
  readonly #scan: (table: Table, options: ScanOptions) => Promise<ScannedRow[]>
  readonly #branches = new Map<string, readonly ModelRow[]>([['main', []]])
  readonly #tags = new Map<string, bigint>()
  readonly #snapshots = new Map<bigint, State>()
  #names = 0

  constructor(table: Table, scan: (table: Table, options: ScanOptions) => Promise<ScannedRow[]>) {
    this.table = table
    this.#scan = scan
  }

  get #fields(): readonly Field[] {
    return schemaOf(this.table.metadata).fields
  }

  #name(prefix: string): string {
    return `${prefix}${(this.#names += 1)}`
  }

  #branchAt(index: number): string {
    return [...this.#branches.keys()][index % this.#branches.size] ?? 'main'
  }

  #state(branch: string): State {
    return { rows: this.#branches.get(branch) ?? [], fields: this.#fields }
  }

  #set(branch: string, rows: readonly ModelRow[]): void {
    this.#branches.set(branch, rows)
    const head = this.table.metadata.refs.get(branch)?.snapshotId
    if (head !== undefined && !this.#snapshots.has(head)) this.#snapshots.set(head, this.#state(branch))
  }

  /** Does the step, and compares the branch that it changed. */
  async run(one: Step): Promise<void> {
    await this.#do(one)
    await this.#check(this.#branchAt(one.branch))
  }

  /** Does the step on the table as others have left it. */
  async change(one: Step): Promise<void> {
    await this.refresh()
    await this.#do(one)
  }

  /**
   * Loads the table that an action may have changed. Its snapshots hold the rows of those they follow; snapshots that it
   * expired are forgotten.
   */
  async refresh(): Promise<void> {
    await this.table.refresh()
    const { snapshots, schemas } = this.table.metadata
    const present = new Set(snapshots.map(({ snapshotId }) => snapshotId))
    for (const { snapshotId, parentSnapshotId, schemaId } of snapshots) {
      if (this.#snapshots.has(snapshotId)) continue
      const parent = parentSnapshotId === undefined ? undefined : this.#snapshots.get(parentSnapshotId)
      const schema = schemas.find((each) => each.schemaId === schemaId)
      if (parent === undefined || schema === undefined) throw new Error(`the model cannot know snapshot ${snapshotId}`)
      this.#snapshots.set(snapshotId, { rows: parent.rows, fields: schema.fields })
    }
    for (const snapshotId of this.#snapshots.keys()) if (!present.has(snapshotId)) this.#snapshots.delete(snapshotId)
  }

  async #do(one: Step): Promise<void> {
    switch (one.do) {
      case 'append':
        return await this.append(this.#branchAt(one.branch), one.seeds)
      case 'delete-positions':
        return await this.#deletePositions(this.#branchAt(one.branch), one)
      case 'delete-equal':
        return await this.#deleteEqual(this.#branchAt(one.branch), one)
      case 'overwrite':
        return await this.#overwrite(this.#branchAt(one.branch), one)
      case 'delete-file':
        return await this.#deleteFile(this.#branchAt(one.branch), one.pick)
      case 'evolve-schema':
        return await evolveSchema(this.table, one.pick, this.#name('c'))
      case 'evolve-spec':
        return await evolveSpec(this.table, one.pick, this.#name('f'))
      case 'rollback':
        return await this.#rollback(this.#branchAt(one.branch), one.pick)
      case 'set-snapshot':
        return await this.#setSnapshot(this.#branchAt(one.branch), one.pick)
      case 'upgrade':
        return await this.#upgrade()
      case 'branch':
        return await this.#branch()
      case 'tag':
        return await this.#tag(this.#branchAt(one.branch))
      case 'drop-ref':
        return await this.#dropRef(one.pick)
    }
  }

  async append(branch: string, seeds: readonly number[]): Promise<void> {
    const added = seeds.map((seed) => makeRow(this.#fields, seed))
    await this.table.append(this.#written(added), { branch })
    this.#set(branch, [...this.#state(branch).rows, ...added])
  }

  #written(rows: readonly ModelRow[]): Record<string, unknown>[] {
    return rows.map((row) => asRow(this.#fields, row))
  }

  /** The rows of a branch by the data file they are in. */
  async #files(branch: string): Promise<[path: string, rows: ScannedRow[]][]> {
    const files = new Map<string, ScannedRow[]>()
    for (const row of await this.#rows({ ref: branch, metadataColumns: ['_file', '_pos'] })) {
      const path = row['_file'] as string
      files.set(path, [...(files.get(path) ?? []), row])
    }
    return [...files].toSorted(([a], [b]) => (a < b ? -1 : 1))
  }

  /** Of a branch that is not there yet: none. */
  async #rows(options: ScanOptions): Promise<ScannedRow[]> {
    const isThere = options.ref === undefined || this.table.metadata.refs.has(options.ref)
    return isThere ? await this.#scan(this.table, options) : []
  }

  async #deletePositions(branch: string, { pick, every, flag }: Step): Promise<void> {
    const files = await this.#files(branch)
    if (files.length === 0 || this.table.metadata.formatVersion === 1) return
    const chosen = [files[pick % files.length], files[(pick + 1) % files.length]].flatMap((file) => file?.[1] ?? [])
    const doomed = [...new Set(chosen)].filter((row) => Number(row['_pos']) % every === 0)
    const positions = new Map<string, number[]>()
    for (const row of doomed) {
      const path = row['_file'] as string
      positions.set(path, [...(positions.get(path) ?? []), Number(row['_pos'])])
    }
    await this.table.deletePositions(positions, { branch, granularity: flag ? 'partition' : 'file' })
    this.#set(branch, without(this.#state(branch), doomed.map(plain)))
  }

  async #deleteEqual(branch: string, { seeds, pick, flag }: Step): Promise<void> {
    const chosen = keys[pick % keys.length] ?? []
    const columns = this.#fields.filter((f) => chosen.includes(f.id))
    if (columns.length !== chosen.length || !this.#canDeleteBy(chosen)) return
    const made = seeds.map((seed) => makeRow(this.#fields, seed))
    const added = flag ? made : []
    await this.table.deleteEqual(
      columns.map((f) => f.name),
      made.map((row) => asRow(columns, row)),
      { branch, append: this.#written(added) },
    )
    const keyOf = (row: ModelRow): string => columns.map((f) => textOf(valueOf(row, f))).join()
    const gone = new Set(made.map(keyOf))
    this.#set(branch, [...this.#state(branch).rows.filter((row) => !gone.has(keyOf(row))), ...added])
  }

  /** A delete of a partition reaches no other, so the key must tell it, unless there is a spec without partitions. */
  #canDeleteBy(fieldIds: readonly number[]): boolean {
    const { formatVersion, partitionSpecs } = this.table.metadata
    if (formatVersion === 1) return false
    if (partitionSpecs.some(isUnpartitioned)) return true
    const [only, ...others] = partitionSpecs
    return others.length === 0 && only?.fields.every((f) => fieldIds.includes(f.sourceId)) === true
  }

  async #overwrite(branch: string, { seeds, flag: partitions }: Step): Promise<void> {
    // The rows of older specs are in partitions of those.
    if (partitions && this.table.metadata.partitionSpecs.length > 1) return
    const added = seeds.map((seed) => makeRow(this.#fields, seed))
    await this.table.overwrite(this.#written(added), { branch, replace: partitions ? 'partitions' : 'table' })
    const replaced = new Set(added.map((row) => this.#partitionOf(row)))
    const stays = this.#state(branch).rows.filter((row) => partitions && !replaced.has(this.#partitionOf(row)))
    this.#set(branch, [...stays, ...added])
  }

  #partitionOf(row: ModelRow): string {
    const spec = partitionSpecOf(this.table.metadata)
    const values = spec.fields.map(({ sourceId, transform }) => {
      const source = this.#fields.find((f) => f.id === sourceId)
      return source === undefined ? null : applyTransform(transform, source.type, valueOf(row, source))
    })
    return partitionKey(spec.specId, values)
  }

  async #deleteFile(branch: string, pick: number): Promise<void> {
    const files = await this.#files(branch)
    const [path, rows] = files[pick % Math.max(1, files.length)] ?? []
    if (path === undefined || rows === undefined) return
    await this.table.deleteFiles([path], { branch })
    this.#set(branch, without(this.#state(branch), rows.map(plain)))
  }

  async #rollback(branch: string, pick: number): Promise<void> {
    const { refs, snapshots } = this.table.metadata
    const past: bigint[] = []
    for (let id = refs.get(branch)?.snapshotId; id !== undefined;) {
      const at = id
      const found = snapshots.find((snapshot) => snapshot.snapshotId === at)
      if (found === undefined) break
      past.push(at)
      id = found.parentSnapshotId
    }
    const target = past[pick % Math.max(1, past.length)]
    if (target === undefined) return
    await this.table.rollbackTo(target, { branch })
    this.#branches.set(branch, this.#snapshots.get(target)?.rows ?? [])
  }

  async #setSnapshot(branch: string, pick: number): Promise<void> {
    const [target, state] = [...this.#snapshots][pick % Math.max(1, this.#snapshots.size)] ?? []
    if (target === undefined) return
    await this.table.setSnapshot(target, { branch })
    this.#branches.set(branch, state?.rows ?? [])
  }

  async #upgrade(): Promise<void> {
    const { formatVersion } = this.table.metadata
    if (formatVersion < 3) await this.table.upgradeFormatVersion((formatVersion + 1) as FormatVersion)
  }

  async #branch(): Promise<void> {
    if (this.table.metadata.currentSnapshotId === undefined || this.#branches.size > 2) return
    const name = this.#name('branch')
    await this.table.createBranch(name)
    this.#branches.set(name, this.#state('main').rows)
  }

  async #tag(branch: string): Promise<void> {
    const snapshotId = this.table.metadata.refs.get(branch)?.snapshotId
    if (snapshotId === undefined) return
    const name = this.#name('tag')
    await this.table.createTag(name, { snapshotId })
    this.#tags.set(name, snapshotId)
  }

  async #dropRef(pick: number): Promise<void> {
    const names = [...this.table.metadata.refs.keys()].filter((name) => name !== 'main')
    const name = names[pick % Math.max(1, names.length)]
    if (name === undefined) return
    await this.table.dropRef(name)
    this.#branches.delete(name)
    this.#tags.delete(name)
  }

  async #check(branch: string): Promise<void> {
    expect(rowTexts(await this.#rows({ ref: branch })), branch).toEqual(stateTexts(this.#state(branch)))
  }

  async checkBranches(): Promise<void> {
    for (const branch of this.#branches.keys()) await this.#check(branch)
  }

  /** Compares every branch, tag and snapshot there is. */
  async checkAll(): Promise<void> {
    await this.checkBranches()
    const past: [ScanOptions, bigint][] = [
      ...[...this.#tags].map(([ref, id]): [ScanOptions, bigint] => [{ ref }, id]),
      ...[...this.#snapshots.keys()].map((id): [ScanOptions, bigint] => [{ snapshotId: id }, id]),
    ]
    for (const [options, id] of past) {
      const state = this.#snapshots.get(id) ?? { rows: [], fields: [] }
      expect(rowTexts(await this.#rows(options)), `${options.ref} ${id}`).toEqual(stateTexts(state))
    }
  }

  /** Compares what a filter gives, of a branch and of a snapshot. */
  async checkFilter(shape: FilterShape, pick: number): Promise<void> {
    const branch = this.#branchAt(pick)
    await this.#checkFiltered({ ref: branch }, this.#state(branch), shape)
    const [snapshotId, state] = [...this.#snapshots][pick % Math.max(1, this.#snapshots.size)] ?? []
    if (snapshotId !== undefined && state !== undefined) await this.#checkFiltered({ snapshotId }, state, shape)
  }

  async #checkFiltered(options: ScanOptions, { rows, fields }: State, shape: FilterShape): Promise<void> {
    const filter: Filter = filterOf(shape, filteredColumns(fields))
    const wanted = rows.map((row) => asRow(fields, row)).filter((row) => fulfils(filter, row))
    const said = JSON.stringify(filter, (_, value: unknown) => (typeof value === 'bigint' ? textOf(value) : value))
    expect(rowTexts(await this.#rows({ ...options, filter })), said).toEqual(rowTexts(wanted))
  }
}

function plain({ _file, _pos, ...row }: ScannedRow): ScannedRow {
  return row
}
