import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { Field, FormatVersion, NewTable, ScannedRow, SchemaChange, Table } from '../src/index.ts'
import { schemaOf } from '../src/index.ts'
import { bed, field } from './write/bed.ts'

// Random histories of a table beside a model of it that is nothing but rows in memory. After every step the scan of
// every branch must give the rows of the model; at the end, that of every snapshot that was ever made.

const { newTable, rows } = bed()

type ModelRow = Map<number, unknown>
interface Model {
  readonly branches: Map<string, ModelRow[]>
  readonly snapshots: Map<bigint, { rows: ModelRow[]; fields: readonly Field[] }>
}

type Step =
  | { do: 'append'; ids: number[]; branch: number }
  | { do: 'delete-positions'; pick: number; every: number; byPartition: boolean; branch: number }
  | { do: 'delete-equal'; ids: number[]; append: boolean; branch: number }
  | { do: 'overwrite'; ids: number[]; partitions: boolean; branch: number }
  | { do: 'delete-file'; pick: number; branch: number }
  | { do: 'evolve-schema'; which: number }
  | { do: 'evolve-spec'; which: number }
  | { do: 'branch' }
  | { do: 'tag' }
  | { do: 'rollback'; back: number }
  | { do: 'upgrade' }

const ids = fc.array(fc.integer({ min: 0, max: 12 }), { minLength: 1, maxLength: 5 })
const branch = fc.integer({ min: 0, max: 3 })
const pick = fc.nat({ max: 5 })
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 5, arbitrary: fc.record({ do: fc.constant('append' as const), ids, branch }) },
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constant('delete-positions' as const),
      pick,
      every: fc.integer({ min: 1, max: 3 }),
      byPartition: fc.boolean(),
      branch,
    }),
  },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('delete-equal' as const), ids, append: fc.boolean(), branch }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('overwrite' as const), ids, partitions: fc.boolean(), branch }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('delete-file' as const), pick, branch }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('evolve-schema' as const), which: fc.nat({ max: 4 }) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('evolve-spec' as const), which: fc.nat({ max: 2 }) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('branch' as const) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('tag' as const) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('rollback' as const), back: pick }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('upgrade' as const) }) },
)

const start: NewTable['schema'] = {
  fields: [field(1, 'id', { type: 'int' }), field(2, 'p', { type: 'string' }), field(3, 's', { type: 'string' })],
}

/** A row of the table's present columns that follows from its id, with nulls here and there. */
function makeRow(fields: readonly Field[], id: number): ModelRow {
  return new Map<number, unknown>(
    fields.map((f): [number, unknown] => {
      if (f.id === 1) return [1, f.type.type === 'long' ? BigInt(id) : id]
      if (f.id === 2) return [2, id % 4 === 3 ? null : ['a', 'b/ ü', 'c'][id % 4]]
      if (f.type.type === 'string') return [f.id, id % 5 === 0 ? null : `s${id}`]
      return [f.id, id % 3 === 0 ? null : id * 1.5]
    }),
  )
}

const asRow = (fields: readonly Field[], row: ModelRow): Record<string, unknown> =>
  Object.fromEntries(fields.map((f) => [f.name, row.get(f.id) ?? null]))

/** Rows as texts that compare, whatever their order; an int and the long it was widened to are the same. */
function texts(list: readonly Readonly<Record<string, unknown>>[]): string[] {
  return list
    .map((row) => JSON.stringify(Object.entries(row).map(([k, v]) => [k, typeof v === 'bigint' ? Number(v) : v])))
    .toSorted()
}

class History {
  readonly table: Table
  readonly model: Model = { branches: new Map([['main', []]]), snapshots: new Map() }
  columns = 3

  constructor(table: Table) {
    this.table = table
  }

  get fields(): readonly Field[] {
    return schemaOf(this.table.metadata).fields
  }

  branchAt(index: number): string {
    const names = [...this.model.branches.keys()]
    return names[index % names.length] ?? 'main'
  }

  set(name: string, list: ModelRow[]): void {
    this.model.branches.set(name, list)
    const head = this.table.metadata.refs.get(name)?.snapshotId
    if (head !== undefined && !this.model.snapshots.has(head)) {
      this.model.snapshots.set(head, { rows: list, fields: this.fields })
    }
  }

  of(name: string): ModelRow[] {
    return this.model.branches.get(name) ?? []
  }

  async scan(ref: string, columns: readonly ['_file', '_pos'] | readonly [] = []): Promise<ScannedRow[]> {
    const isThere = this.table.metadata.refs.has(ref)
    return isThere ? await rows(this.table, { ref, metadataColumns: columns }) : []
  }

  async run(step: Step): Promise<void> {
    switch (step.do) {
      case 'append':
        return await this.append(this.branchAt(step.branch), step.ids)
      case 'delete-positions':
        return await this.deletePositions(this.branchAt(step.branch), step)
      case 'delete-equal':
        return await this.deleteEqual(this.branchAt(step.branch), step.ids, step.append)
      case 'overwrite':
        return await this.overwrite(this.branchAt(step.branch), step.ids, step.partitions)
      case 'delete-file':
        return await this.deleteFile(this.branchAt(step.branch), step.pick)
      case 'evolve-schema':
        return await this.evolveSchema(step.which)
      case 'evolve-spec':
        return await this.evolveSpec(step.which)
      case 'rollback':
        return await this.rollback(step.back)
      case 'upgrade':
        return await this.upgrade()
      case 'branch':
      case 'tag':
        return await this.ref(step.do)
    }
  }

  async append(name: string, list: readonly number[]): Promise<void> {
    const added = list.map((id) => makeRow(this.fields, id))
    await this.table.append(
      added.map((row) => asRow(this.fields, row)),
      { branch: name },
    )
    this.set(name, [...this.of(name), ...added])
  }

  async deletePositions(
    name: string,
    { pick: at, every, byPartition }: Step & { do: 'delete-positions' },
  ): Promise<void> {
    const scanned = await this.scan(name, ['_file', '_pos'])
    const files = [...new Set(scanned.map((row) => row['_file'] as string))].toSorted()
    if (files.length === 0 || this.table.metadata.formatVersion === 1) return
    const chosen = new Set([files[at % files.length], files[(at + 1) % files.length]])
    const doomed = scanned.filter((row) => chosen.has(row['_file'] as string) && Number(row['_pos']) % every === 0)
    const positions = new Map<string, number[]>()
    for (const row of doomed) {
      const file = row['_file'] as string
      positions.set(file, [...(positions.get(file) ?? []), Number(row['_pos'])])
    }
    await this.table.deletePositions(positions, { branch: name, granularity: byPartition ? 'partition' : 'file' })
    const goes = texts(doomed.map(({ _file, _pos, ...row }) => row))
    this.set(
      name,
      this.of(name).filter((row) => {
        const [text = ''] = texts([asRow(this.fields, row)])
        const index = goes.indexOf(text)
        if (index >= 0) goes.splice(index, 1)
        return index < 0
      }),
    )
    expect(goes).toEqual([])
  }

  async deleteEqual(name: string, list: readonly number[], append: boolean): Promise<void> {
    const { metadata } = this.table
    if (metadata.formatVersion === 1 || metadata.partitionSpecs.length > 1) return
    const keys = list.map((id) => makeRow(this.fields, id))
    const named = this.fields.filter((f) => f.id <= 2).map((f) => f.name)
    const added = append ? keys : []
    await this.table.deleteEqual(
      named,
      keys.map((row) => Object.fromEntries(this.fields.filter((f) => f.id <= 2).map((f) => [f.name, row.get(f.id)]))),
      { branch: name, append: added.map((row) => asRow(this.fields, row)) },
    )
    const gone = new Set(list)
    this.set(name, [...this.of(name).filter((row) => !gone.has(Number(row.get(1)))), ...added])
  }

  async overwrite(name: string, list: readonly number[], partitions: boolean): Promise<void> {
    if (partitions && this.table.metadata.partitionSpecs.length > 1) return
    const added = list.map((id) => makeRow(this.fields, id))
    await this.table.overwrite(
      added.map((row) => asRow(this.fields, row)),
      { branch: name, replace: partitions ? 'partitions' : 'table' },
    )
    const spec = this.table.metadata.partitionSpecs[0]
    const replaced = new Set(added.map((row) => row.get(2)))
    const stays = (row: ModelRow): boolean => partitions && (spec?.fields.length ?? 0) > 0 && !replaced.has(row.get(2))
    this.set(name, [...this.of(name).filter(stays), ...added])
  }

  async deleteFile(name: string, at: number): Promise<void> {
    const scanned = await this.scan(name, ['_file', '_pos'])
    const files = [...new Set(scanned.map((row) => row['_file'] as string))].toSorted()
    const file = files[at % Math.max(1, files.length)]
    if (file === undefined) return
    await this.table.deleteFiles([file], { branch: name })
    const goes = texts(scanned.filter((row) => row['_file'] === file).map(({ _file, _pos, ...row }) => row))
    this.set(
      name,
      this.of(name).filter((row) => {
        const index = goes.indexOf(texts([asRow(this.fields, row)])[0] ?? '')
        if (index >= 0) goes.splice(index, 1)
        return index < 0
      }),
    )
  }

  async evolveSchema(which: number): Promise<void> {
    const last = this.fields.at(-1)
    const idField = this.fields.find((f) => f.id === 1)
    const name = (id: number): string => this.fields.find((f) => f.id === id)?.name ?? ''
    this.columns += 1
    const changes: SchemaChange[][] = [
      [{ change: 'add', name: `n${this.columns}`, type: { type: 'double' } }],
      [{ change: 'rename', column: name(2), to: `p${this.columns}` }],
      last !== undefined && last.id > 3 ? [{ change: 'drop', column: last.name }] : [],
      idField?.type.type === 'int' ? [{ change: 'widen', column: name(1), type: { type: 'long' } }] : [],
      [{ change: 'move', column: name(2), to: 'first' }],
    ]
    const chosen = changes[which] ?? []
    if (chosen.length > 0) await this.table.updateSchema(chosen)
  }

  async evolveSpec(which: number): Promise<void> {
    const { metadata } = this.table
    const spec = metadata.partitionSpecs.find((s) => s.specId === metadata.defaultSpecId)
    const live = spec?.fields.filter((f) => f.transform.name !== 'void') ?? []
    const name = (id: number): string => this.fields.find((f) => f.id === id)?.name ?? ''
    const first = live[0]
    if (which === 0 && first !== undefined) {
      await this.table.updatePartitionSpec([{ change: 'remove', name: first.name }])
    } else if (which === 1 && live.every((f) => f.transform.name !== 'bucket')) {
      const transform = { name: 'bucket', buckets: 3 } as const
      await this.table.updatePartitionSpec([{ change: 'add', column: name(1), transform, name: `b${this.columns}` }])
    } else if (which === 2 && live.every((f) => f.transform.name !== 'truncate')) {
      const transform = { name: 'truncate', width: 1 } as const
      await this.table.updatePartitionSpec([{ change: 'add', column: name(2), transform, name: `t${this.columns}` }])
    }
    this.columns += 1
  }

  async rollback(back: number): Promise<void> {
    const { metadata } = this.table
    const past: bigint[] = []
    for (let id = metadata.currentSnapshotId; id !== undefined;) {
      past.push(id)
      const at = id
      id = metadata.snapshots.find((s) => s.snapshotId === at)?.parentSnapshotId
    }
    const target = past[back % Math.max(1, past.length)]
    if (target === undefined) return
    await this.table.rollbackTo(target)
    this.model.branches.set('main', this.model.snapshots.get(target)?.rows ?? [])
  }

  async upgrade(): Promise<void> {
    const { formatVersion } = this.table.metadata
    if (formatVersion < 3) await this.table.upgradeFormatVersion((formatVersion + 1) as FormatVersion)
  }

  async ref(kind: 'branch' | 'tag'): Promise<void> {
    if (this.table.metadata.currentSnapshotId === undefined || this.model.branches.size > 2) return
    const name = `${kind}${this.table.metadata.refs.size}`
    if (kind === 'tag') await this.table.createTag(name, { replace: true })
    else {
      await this.table.createBranch(name)
      this.model.branches.set(name, this.of('main'))
    }
  }

  async check(): Promise<void> {
    for (const [name, list] of this.model.branches) {
      expect(texts(await this.scan(name)), name).toEqual(texts(list.map((row) => asRow(this.fields, row))))
    }
  }

  async checkPast(): Promise<void> {
    for (const [snapshotId, { rows: list, fields }] of this.model.snapshots) {
      expect(texts(await rows(this.table, { snapshotId })), `snapshot ${snapshotId}`).toEqual(
        texts(list.map((row) => asRow(fields, row))),
      )
    }
  }
}

test('any history of a table reads as its model', { timeout: 170_000 }, async () => {
  const version = fc.constantFrom<FormatVersion[]>(1, 2, 3)
  const numRuns = Number(process.env['FENCEPOST_HISTORIES'] ?? 100)
  await fc.assert(
    fc.asyncProperty(
      version,
      fc.boolean(),
      fc.array(step, { minLength: 3, maxLength: 6 }),
      async (formatVersion, partitioned, steps) => {
        const table = await newTable({
          schema: start,
          formatVersion,
          ...(partitioned && {
            partitionSpec: { fields: [{ fieldId: 1000, sourceId: 2, name: 'p', transform: { name: 'identity' } }] },
          }),
        })
        const history = new History(table)
        await history.append('main', [1, 2, 3, 4])
        for (const one of steps) {
          await history.run(one)
          await history.check()
        }
        await history.checkPast()
      },
    ),
    { numRuns },
  )
})
