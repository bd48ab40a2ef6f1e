import fc from 'fast-check'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { seedOfTheDay } from '../../../../engine/test/seed.ts'
import { DuckDb, type FormatVersion } from '../../../src/index.ts'
import { failingCommits } from '../../commit/commit-faults.ts'
import { agedBucket, catalogOn, lake } from '../lake.ts'
import { anyFileAction, expectNothingToDo, runAction } from './any-action.ts'
import { anyFileStep, FileHistory } from './file-history.ts'
import { anyRace, expectAllowed, Race, racingStorage } from './racing.ts'
import { Inspector } from './sound.ts'

// As any-maintenance.ts, for the actions that do not look into data files: without them many more can be tried.
// Of every snapshot that is left the live files are compared, with their sequence numbers.

const numRuns = Number(process.env['FENCEPOST_HISTORIES'] ?? 210)
const path = process.env['FENCEPOST_PATH']

const round = fc.record({
  before: fc.array(anyFileStep, { minLength: 1, maxLength: 5 }),
  action: anyFileAction,
  race: anyRace(anyFileStep, 40),
})
const history = fc.record({
  formatVersion: fc.constantFrom<FormatVersion>(1, 2, 3),
  minCountToMerge: fc.constantFrom('2', '100'),
  rounds: fc.array(round, { minLength: 1, maxLength: 3 }),
})

let opened: DuckDb | undefined
beforeAll(async () => {
  opened = await DuckDb.open({ threads: 1 })
})
afterAll(() => opened?.close())

test(
  'any history with actions on snapshots, manifests and orphans keeps the files of every snapshot',
  { timeout: 120_000 + numRuns * 5000 },
  async () => {
    const duckDb = opened ?? expect.fail('it is opened before all tests')
    await fc.assert(
      fc.asyncProperty(history, async ({ formatVersion, minCountToMerge, rounds }) => {
        const storage = agedBucket()
        const properties = {
          'commit.manifest.min-count-to-merge': minCountToMerge,
          'commit.status-check.min-wait-ms': '1',
        }
        const made = await lake({ formatVersion, properties }, storage)
        const { identifier } = made.table.loaded
        const inspector = new Inspector()
        const files = new FileHistory(made, inspector)
        for (const { before, action, race } of rounds) {
          for (const step of before) await files.change(step)
          const meetings = new Map(race.meanwhile.map(([at, step]) => [at, () => files.change(step)]))
          const racing = racingStorage(storage, new Race(meetings, race.breaks))
          const catalog = failingCommits(catalogOn(racing), race.commitFaults)
          const outcome = await catalog
            .loadTable(identifier)
            .then((loaded) => runAction(loaded, action, { catalog, duckDb }))
            .catch((error: unknown) => error)
          expectAllowed(outcome, race)
          await files.check()
          await inspector.expectSound(files.table.loaded, storage.files)
          const alone = catalogOn(storage)
          await runAction(await alone.loadTable(identifier), action, { catalog: alone, duckDb })
          await files.check()
          await inspector.expectSound(files.table.loaded, storage.files)
          await expectNothingToDo(files.table.loaded, action, alone)
        }
      }),
      { numRuns, seed: seedOfTheDay(), ...(path !== undefined && { path }) },
    )
  },
)
