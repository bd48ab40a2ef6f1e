import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import { afterEach, beforeAll, beforeEach, expect } from 'vitest'
import { buildFolder } from '../../../packages/engine/test/build-folder.ts'
import { createTestDatabase } from '../../../packages/engine/test/database.ts'
import { aggregation } from '../src/aggregation.ts'
import { csvIngest } from '../src/csv-ingest.ts'
import { emissionRecalc } from '../src/emission-recalc.ts'
import { factorIngest } from '../src/factor-ingest.ts'
import { computeReport } from '../src/independent.ts'
import { sampleYear } from '../src/sample.ts'
import { Screen } from '../src/screen.ts'
import { factorFiles, openWorld, type Activities, type World } from '../src/world.ts'

/** A world of its own for every test, with a small sample unless told otherwise. */
export interface Bed extends World {
  url: string
  query<Row = Record<string, unknown>>(text: string, values?: unknown[]): Promise<Row[]>
  /** A file of CSV. */
  file(name: string, text: string): string
  /** Works in this process until the test ends. */
  work(): void
  /** Keeps something locked in a session of its own until it is let go. */
  hold(statement: string): Promise<{ letGo(): Promise<void> }>
  /** Resolves when so many sessions wait for a lock with a statement like this. */
  blocked(statement: string, sessions?: number): Promise<void>
  /** Has the factors and the sample ingested, up to the report. */
  ingested(): Promise<void>
  /** Waits until no job is left to run. */
  settled(): Promise<void>
  /** How many jobs of an operation there have been. */
  count(operation: { name: string }): Promise<number>
  /** Expects the last report to be what the files say, and to have been written by its job once. */
  expectReport(activities?: Activities, factors?: string): Promise<void>
}

export const rows = 3_000
export const year = sampleYear
export { aggregation, csvIngest, emissionRecalc, factorIngest }

/** To be called once in a test file; the answer gives the bed of the test that runs. */
export function carbonBed(): () => Bed {
  let bed: Bed
  let close: () => Promise<void>
  beforeAll(() => buildFolder('examples/carbon-ingest'))
  beforeEach(async () => {
    ;({ bed, close } = await openBed())
  })
  afterEach(() => close())
  return () => bed
}

async function openBed(): Promise<{ bed: Bed; close: () => Promise<void> }> {
  const { url, drop } = await createTestDatabase()
  const folder = mkdtempSync(join(tmpdir(), 'fencepost-carbon-'))
  const pool = new pg.Pool({ connectionString: url, max: 4 })
  pool.on('error', () => {}) // a connection may still be closing when the database is dropped
  const stop = new AbortController()
  const working: Promise<void>[] = []
  const screen = new Screen({ write: () => {} }, {})
  const world = await openWorld({ screen, signal: stop.signal, database: url, rows, staleMs: 1_000 })
  const { engine } = world
  const query: Bed['query'] = async <Row>(text: string, values: unknown[] = []) =>
    (await pool.query(text, values)).rows as Row[]
  const bed: Bed = {
    ...world,
    url,
    query,
    file(name, text) {
      const path = join(folder, name)
      writeFileSync(path, text)
      return path
    },
    work() {
      working.push(engine.work({ concurrency: 4, pollMs: 500, sweepMs: 500, signal: stop.signal }))
    },
    async hold(statement) {
      const client = await pool.connect()
      await client.query('begin')
      await client.query(statement)
      return { letGo: async () => client.query('rollback').then(() => client.release()) }
    },
    async blocked(statement, sessions = 1) {
      const waiting = () =>
        query(
          `select from pg_stat_activity
            where datname = current_database() and wait_event_type = 'Lock' and query like $1`,
          [`%${statement}%`],
        )
      await expect.poll(async () => (await waiting()).length, { timeout: 15_000 }).toBe(sessions)
    },
    async ingested() {
      await engine.submit(factorIngest, { year, method: 'csv', source: factorFiles.factors })
      await engine.submit(csvIngest, { year, ...world.activities })
      await bed.settled()
    },
    async settled() {
      const left = () => query(`select operation from fencepost.jobs where status in ('pending', 'running')`)
      await expect.poll(left, { timeout: 25_000 }).toEqual([])
    },
    count: async ({ name }) => (await engine.list({ operation: name })).length,
    async expectReport(activities = world.activities, factors = factorFiles.factors) {
      const [report, ...others] = await world.reports()
      const expected = computeReport(activities.file, factors)
      expect(report?.lines).toEqual(expected)
      expect(report?.entries).toBe(activities.rows)
      expect(report?.micrograms).toBe(expected.reduce((sum, { micrograms }) => sum + micrograms, 0n))
      expect(others.map(({ jobId }) => jobId)).not.toContain(report?.jobId)
    },
  }
  const close = async () => {
    stop.abort()
    await Promise.all(working)
    await world.close()
    await pool.end()
    await drop()
    rmSync(folder, { recursive: true, force: true })
  }
  return { bed, close }
}
