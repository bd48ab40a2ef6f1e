import fc from 'fast-check'
import { test } from 'vitest'
import { seedOfTheDay } from '../../../engine/test/seed.ts'
import { openTable, type FormatVersion } from '../../src/index.ts'
import { anyCommitFault, failingCommits } from '../commit/commit-faults.ts'
import { filterShape } from '../scan/random-filters.ts'
import { bed } from '../write/bed.ts'
import { specFields } from './evolve.ts'
import { anyStep, History } from './history.ts'
import { startSchema } from './model.ts'

// Random histories of a table beside a model of it that is nothing but rows in memory. After every step the scan of the
// branch must give the rows of the model; at the end that of every branch, tag and snapshot that was ever made, and that
// of filters. Commits are denied though they were applied, or lose their answer, before and after they are applied.
//
// FENCEPOST_HISTORIES says how many are tried for each format version to begin with, FENCEPOST_SEED which; without it they
// are those of the day. What fails is printed with its seed and path.
//   FENCEPOST_HISTORIES=1000 npx vitest run packages/iceberg/test/histories
//   FENCEPOST_SEED=… FENCEPOST_PATH=… npx vitest run packages/iceberg/test/histories

const numRuns = Number(process.env['FENCEPOST_HISTORIES'] ?? 10)
const path = process.env['FENCEPOST_PATH']

const metrics = fc.constantFrom('none', 'counts', 'truncate(2)', 'truncate(16)', 'full')
const history = fc.record({
  spec: fc.option(fc.nat(7)),
  metrics,
  // With 2 every commit merges manifests, with 100 none of so few does.
  minCountToMerge: fc.constantFrom('2', '100'),
  steps: fc.array(anyStep, { minLength: 3, maxLength: 8 }),
  faults: fc.array(fc.option(anyCommitFault, { freq: 3 }), { minLength: 0, maxLength: 12 }),
  filters: fc.array(filterShape, { minLength: 4, maxLength: 4 }),
})

/** The test of tables that begin with this format version. */
export function anyHistory(formatVersion: FormatVersion): void {
  const { catalog, duckdb, newTable, rows } = bed()
  test(
    `any history of a table of version ${formatVersion} reads as its model`,
    { timeout: 30_000 + numRuns * 5000 },
    async () => {
      await fc.assert(
        fc.asyncProperty(history, async ({ spec, metrics: mode, minCountToMerge, steps, faults, filters }) => {
          const fields = spec === null ? [] : specFields(spec)
          const created = await newTable({
            schema: startSchema,
            formatVersion,
            partitionSpec: { fields: fields.map((f, index) => ({ ...f, fieldId: 1000 + index, name: 'part' })) },
            properties: {
              'write.metadata.metrics.default': mode,
              'commit.manifest.min-count-to-merge': minCountToMerge,
              'commit.retry.min-wait-ms': '1',
              'commit.status-check.min-wait-ms': '1',
            },
          })
          const faulty = failingCommits(catalog(), faults)
          const table = await openTable(faulty, created.loaded.identifier, { duckDb: duckdb() })
          const made = new History(table, rows)
          await made.append('main', [1, 2, 3, 4, 10])
          for (const one of steps) await made.run(one)
          await made.checkAll()
          for (const [index, shape] of filters.entries()) await made.checkFilter(shape, index)
        }),
        { numRuns, seed: seedOfTheDay(), ...(path !== undefined && { path }) },
      )
    },
  )
}
