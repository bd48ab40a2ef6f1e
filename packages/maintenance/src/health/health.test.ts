import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { TableFacts } from '@fencepost/iceberg'
import { health, sharedOut } from './health.ts'
import type { HealthFacts } from './health-facts.ts'
import { healthToJson } from './health-json.ts'
import { effectiveSettings } from './health-settings.ts'
import type { ScanShape } from './scan-cost.ts'

const settings = effectiveSettings({})

const tableFacts: TableFacts = {
  dataFiles: { files: 0, records: 0, bytes: 0, small: 0, smallBytes: 0, histogram: [] },
  deleteFiles: {
    files: 0,
    bytes: 0,
    positionFiles: 0,
    positionDeletes: 0,
    equalityFiles: 0,
    equalityDeletes: 0,
    vectors: 0,
    vectorDeletes: 0,
  },
  snapshots: { count: 1, oldestMs: 0, newestMs: 0, branches: 1, tags: 0 },
  manifests: { count: 1, bytes: 0, ofDeletes: 0, small: 0, mergeable: 0 },
  partitions: { count: 1, exact: true, mostFragmented: [] },
  metadata: { logEntries: 0, oldestLogMs: undefined, oldestAgeMs: undefined },
}

const empty: ScanShape = {
  manifests: 0,
  dataFiles: 0,
  liveBytes: 0,
  deletedBytes: 0,
  positionDeleteFiles: 0,
  deletionVectors: 0,
  equalityDeletes: 0,
}

function factsOf(now: ScanShape, ideal: ScanShape, plans: Partial<HealthFacts['plans']> = {}): HealthFacts {
  return {
    table: tableFacts,
    formatVersion: 2,
    now,
    ideal,
    plans: {
      dataFiles: { files: 0, bytes: 0, groups: 0, after: now, options: {} },
      positionDeletes: { files: 0, bytes: 0, filesAfter: now.positionDeleteFiles },
      manifests: { manifests: 0, manifestsAfter: now.manifests, unclustered: false },
      snapshots: { expired: 0, files: 0, bytes: 0 },
      orphans: { files: 0, bytes: 0, share: 0, isSuspicious: false },
      ...plans,
    },
  }
}

const many = fc.integer({ min: 0, max: 100_000 })
const bytes = fc.integer({ min: 0, max: 10 ** 13 })

/** A table, and the least that could hold its live rows. */
const anyFacts = fc
  .record({
    manifests: many,
    dataFiles: many,
    liveBytes: bytes,
    deletedBytes: bytes,
    positionDeleteFiles: many,
    deletionVectors: many,
    equalityDeletes: many,
    idealManifests: fc.double({ min: 0, max: 1, noNaN: true }),
    idealFiles: fc.double({ min: 0, max: 1, noNaN: true }),
  })
  .map(({ idealManifests, idealFiles, ...now }) =>
    factsOf(now, {
      ...empty,
      liveBytes: now.liveBytes,
      manifests: Math.floor(now.manifests * idealManifests),
      dataFiles: Math.floor(now.dataFiles * idealFiles),
    }),
  )

describe('the score', () => {
  test('is from 0 to 100, and the losses are what it lacks', () => {
    fc.assert(
      fc.property(anyFacts, (facts) => {
        const { score, losses, scanSeconds, idealScanSeconds } = health(facts, settings)
        expect(score).toBeGreaterThanOrEqual(0)
        expect(score).toBeLessThanOrEqual(100)
        const points = losses.reduce((sum, loss) => sum + loss.points, 0)
        expect(points).toBe(100 - score)
        const seconds = losses.reduce((sum, loss) => sum + loss.seconds, 0)
        expect(seconds).toBeCloseTo(scanSeconds - idealScanSeconds, 5)
      }),
    )
  })

  test('never rises when the same rows are in more files, or when there are more deletes or manifests', () => {
    const parts = ['dataFiles', 'manifests', 'positionDeleteFiles', 'deletionVectors', 'equalityDeletes'] as const
    fc.assert(
      fc.property(anyFacts, fc.constantFrom(...parts), fc.integer({ min: 1, max: 1000 }), (facts, part, more) => {
        const worse = { ...facts, now: { ...facts.now, [part]: facts.now[part] + more } }
        expect(health(worse, settings).score).toBeLessThanOrEqual(health(facts, settings).score)
      }),
    )
  })

  test('is 100 for an empty table and for one file without deletes', () => {
    expect(health(factsOf(empty, empty), settings).score).toBe(100)
    const one = { ...empty, manifests: 1, dataFiles: 1, liveBytes: 1000 }
    expect(health(factsOf(one, one), settings)).toMatchObject({ score: 100, band: 'good', losses: [], issues: [] })
  })

  test('is what the seconds say', () => {
    const now = { ...empty, manifests: 1, dataFiles: 100, liveBytes: 0 }
    const costs = {
      manifest: 0,
      dataFile: 0.01,
      byte: 0,
      positionDeleteFile: 0,
      deletionVector: 0,
      equalityDelete: 0,
    }
    const { score, scanSeconds, losses } = health(factsOf(now, { ...now, dataFiles: 25 }), settings, costs)
    expect({ score, scanSeconds }).toEqual({ score: 25, scanSeconds: 1 })
    expect(losses).toEqual([{ code: 'small_files', seconds: 0.75, points: 75, action: 'rewrite_data_files' }])
  })
})

describe('recommended actions', () => {
  test('none when no action has anything to do, whatever the score', () => {
    fc.assert(
      fc.property(anyFacts, (facts) => {
        const { recommendedActions, score, scoreAfter } = health(facts, settings)
        expect(recommendedActions).toEqual([])
        expect(scoreAfter).toBe(score)
      }),
    )
  })

  test('say what they would save, and the score after them', () => {
    const now = { ...empty, manifests: 2, dataFiles: 1000, liveBytes: 10 ** 8 }
    const after = { ...now, dataFiles: 10 }
    const facts = factsOf(
      now,
      { ...after, manifests: 1 },
      {
        dataFiles: { files: 1000, bytes: 10 ** 8, groups: 1, after, options: { 'min-input-files': 5 } },
        manifests: { manifests: 2, manifestsAfter: 1, unclustered: false },
      },
    )
    const told = health(facts, settings)
    expect(told.recommendedActions.map(({ action }) => action)).toEqual(['rewrite_data_files'])
    expect(told.recommendedActions[0]?.saves).toMatchObject({ files: 990 })
    expect(told.recommendedActions[0]?.reason).toBe('1000 files would become 10.')
    expect(told.scoreAfter).toBeGreaterThan(told.score)
  })

  test('doing those that are recommended makes no other worth it', () => {
    fc.assert(
      fc.property(anyFacts, (facts) => {
        const after = { ...facts.ideal, manifests: facts.now.manifests }
        const ready = factsOf(facts.now, facts.ideal, {
          dataFiles: { files: facts.now.dataFiles, bytes: 0, groups: 1, after, options: {} },
          manifests: { manifests: facts.now.manifests, manifestsAfter: facts.ideal.manifests, unclustered: false },
        })
        const first = health(ready, settings).recommendedActions.map(({ action }) => action)
        const done = {
          ...facts.now,
          ...(first.includes('rewrite_data_files') && after),
          manifests: first.includes('rewrite_manifests') ? facts.ideal.manifests : facts.now.manifests,
        }
        const left = factsOf(done, facts.ideal, {
          dataFiles: first.includes('rewrite_data_files')
            ? { files: 0, bytes: 0, groups: 0, after: done, options: {} }
            : {
                files: done.dataFiles,
                bytes: 0,
                groups: 1,
                after: { ...after, manifests: done.manifests },
                options: {},
              },
          manifests: { manifests: done.manifests, manifestsAfter: facts.ideal.manifests, unclustered: false },
        })
        expect(health(left, settings).recommendedActions.filter(({ action }) => !first.includes(action))).toEqual([])
      }),
    )
  })

  test('orphans and old snapshots are counted as bytes, not in the score', () => {
    const one = { ...empty, manifests: 1, dataFiles: 1, liveBytes: 1000 }
    const facts = factsOf(one, one, {
      snapshots: { expired: 40, files: 90, bytes: 5000 },
      orphans: { files: 3, bytes: 300, share: 0.1, isSuspicious: false },
    })
    const told = health(facts, settings)
    expect(told).toMatchObject({ score: 100, wastedBytes: { total: 5300, expirable: 5000, orphans: 300 } })
    expect(told.recommendedActions.map(({ action }) => action)).toEqual(['expire_snapshots', 'remove_orphan_files'])
    expect(told.issues.map(({ code }) => code)).toEqual(['old_snapshots', 'orphan_files'])
  })
})

test('points are shared out whole, without a rest', () => {
  expect(sharedOut(100, [1, 1, 1])).toEqual([34, 33, 33])
  expect(sharedOut(7, [0, 0])).toEqual([0, 0])
  fc.assert(
    fc.property(
      fc.integer({ min: 0, max: 100 }),
      fc.array(fc.nat({ max: 10 ** 12 }), { minLength: 1 }),
      (total, shares) => {
        const shared = sharedOut(total, shares)
        const sum = shared.reduce((a, b) => a + b, 0)
        expect(sum).toBe(shares.some((share) => share > 0) ? total : 0)
      },
    ),
  )
})

test('as JSON it has snake_case keys, and null for what is not known', () => {
  const one = { ...empty, manifests: 1, dataFiles: 1, liveBytes: 1000 }
  const json = healthToJson(health(factsOf(one, one, { orphans: undefined }), settings))
  expect(json).toMatchObject({
    score: 100,
    scan_seconds: expect.any(Number),
    wasted_bytes: { orphans: null },
    recommended_actions: [],
    settings: { min_input_files: { value: 5, source: 'built-in' } },
  })
  expect(JSON.parse(JSON.stringify(json))).toEqual(json)
})
