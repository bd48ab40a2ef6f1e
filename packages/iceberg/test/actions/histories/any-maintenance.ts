import fc from 'fast-check'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { seedOfTheDay } from '../../../../engine/test/seed.ts'
import {
  DuckDb,
  openTable,
  type FormatVersion,
  type ScannedRow,
  type ScanOptions,
  type Table,
} from '../../../src/index.ts'
import { failingCommits } from '../../commit/commit-faults.ts'
import { specFields } from '../../histories/evolve.ts'
import { anyStep, History } from '../../histories/history.ts'
import { rowTexts, startSchema } from '../../histories/model.ts'
import { agedBucket, catalogOn, lake } from '../lake.ts'
import { anyAction, expectNothingToDo, runAction } from './any-action.ts'
import { anyRace, expectAllowed, Race, racingStorage } from './racing.ts'
import { Inspector } from './sound.ts'

// Random histories of a table with any of the five actions in between. Others change the table between any two calls
// that an action makes to the storage; commits lose their answer, or are denied though they were applied; the process of
// the action ends at any call. After that, and after the action was run once more by itself:
//   - every branch and every snapshot that is left reads as the model, so rows that were deleted stay deleted
//   - every file that a snapshot reaches is there, and no data file has two vectors
//   - row ids are those of before
//   - planning again finds nothing to do
//
// FENCEPOST_HISTORIES says how many are tried for each format version to begin with, FENCEPOST_SEED which.
//   FENCEPOST_HISTORIES=2000 npx vitest run packages/iceberg/test/actions/histories

const numRuns = Number(process.env['FENCEPOST_HISTORIES'] ?? 30)
const path = process.env['FENCEPOST_PATH']

const round = fc.record({
  before: fc.array(anyStep, { maxLength: 3 }),
  action: anyAction,
  race: anyRace(anyStep, 60),
})
type Round = typeof round extends fc.Arbitrary<infer T> ? T : never

const history = fc.record({
  spec: fc.option(fc.nat(7)),
  minCountToMerge: fc.constantFrom('2', '100'),
  granularity: fc.constantFrom('file', 'partition'),
  start: fc.array(anyStep, { minLength: 1, maxLength: 3 }),
  rounds: fc.array(round, { minLength: 1, maxLength: 2 }),
})

/** The test of tables that begin with this format version. */
export function anyMaintenance(formatVersion: FormatVersion): void {
  let opened: DuckDb | undefined
  const duckDb = (): DuckDb => opened ?? expect.fail('it is opened before all tests')
  beforeAll(async () => {
    opened = await DuckDb.open({ threads: 1 })
  })
  afterAll(() => opened?.close())
  test(
    `any history with maintenance of a table of version ${formatVersion} reads as its model`,
    { timeout: 120_000 + numRuns * 20_000 },
    async () => {
      await fc.assert(
        fc.asyncProperty(history, async ({ spec, minCountToMerge, granularity, start, rounds }) => {
          const fields = spec === null ? [] : specFields(spec)
          const storage = agedBucket()
          const { table } = await lake(
            {
              schema: startSchema,
              formatVersion,
              partitionSpec: { fields: fields.map((f, index) => ({ ...f, fieldId: 1000 + index, name: 'part' })) },
              properties: {
                'commit.manifest.min-count-to-merge': minCountToMerge,
                'write.delete.granularity': granularity,
                'commit.status-check.min-wait-ms': '1',
              },
            },
            storage,
          )
          const maintained = await Maintained.open(table, storage, duckDb())
          for (const step of start) await maintained.made.change(step)
          for (const each of rounds) await maintained.run(each)
          await maintained.made.checkAll()
        }),
        { numRuns, seed: seedOfTheDay(), ...(path !== undefined && { path }) },
      )
    },
  )
}

/** A table and its model, beside actions. */
class Maintained {
  readonly made: History
  readonly #storage: ReturnType<typeof agedBucket>
  readonly #duckDb: DuckDb
  readonly #inspector = new Inspector()
  /** Snapshots whose row ids were compared. */
  readonly #compared = new Set<bigint>()
  #checked: string | undefined

  private constructor(made: History, storage: ReturnType<typeof agedBucket>, duckDb: DuckDb) {
    this.made = made
    this.#storage = storage
    this.#duckDb = duckDb
  }

  static async open(table: Table, storage: ReturnType<typeof agedBucket>, duckDb: DuckDb): Promise<Maintained> {
    const own = await openTable(catalogOn(storage), table.loaded.identifier, { duckDb })
    const made = new History(own, scanned)
    await made.append('main', [1, 2, 3, 4, 10])
    await made.append('main', [5, 2, 17])
    return new Maintained(made, storage, duckDb)
  }

  async run({ before, action, race }: Round): Promise<void> {
    for (const step of before) await this.made.change(step)
    const meetings = new Map(race.meanwhile.map(([at, step]) => [at, (): Promise<void> => this.made.change(step)]))
    const racing = racingStorage(this.#storage, new Race(meetings, race.breaks))
    const catalog = failingCommits(catalogOn(racing), race.commitFaults)
    const { identifier } = this.made.table.loaded
    const outcome = await catalog
      .loadTable(identifier)
      .then((loaded) => runAction(loaded, action, { catalog, duckDb: this.#duckDb }))
      .catch((error: unknown) => error)
    expectAllowed(outcome, race)
    await this.#check()
    // Once more, alone.
    const alone = catalogOn(this.#storage)
    await runAction(await alone.loadTable(identifier), action, { catalog: alone, duckDb: this.#duckDb })
    await this.#check()
    await expectNothingToDo(this.made.table.loaded, action, alone)
  }

  async #check(): Promise<void> {
    await this.made.refresh()
    const { loaded } = this.made.table
    // What is read does not depend on anything else.
    if (loaded.metadataLocation !== this.#checked) await this.made.checkBranches()
    this.#checked = loaded.metadataLocation
    await this.#inspector.expectSound(loaded, this.#storage.files)
    for (const { snapshotId, parentSnapshotId, firstRowId, summary } of loaded.metadata.snapshots) {
      if (this.#compared.has(snapshotId)) continue
      this.#compared.add(snapshotId)
      const parent = loaded.metadata.snapshots.find((each) => each.snapshotId === parentSnapshotId)
      if (summary?.operation !== 'replace' || firstRowId === undefined || parent?.firstRowId === undefined) continue
      expect(await this.#lineage(snapshotId), 'row ids').toEqual(await this.#lineage(parent.snapshotId))
    }
  }

  async #lineage(snapshotId: bigint): Promise<string[]> {
    const metadataColumns = ['_row_id', '_last_updated_sequence_number'] as const
    const rows = await scanned(this.made.table, { snapshotId, metadataColumns })
    return rowTexts(rows.map(({ _row_id, _last_updated_sequence_number }) => ({ _row_id, _last_updated_sequence_number }))) // prettier-ignore
  }
}

async function scanned(table: Table, options: ScanOptions = {}): Promise<ScannedRow[]> {
  const rows: ScannedRow[] = []
  for await (const batch of table.scan(options)) rows.push(...batch)
  return rows
}
