import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { demonstrate, type ExaminedTable, type TableProgress } from '../src/demo/index.ts'
import { openMaintenanceBed, type MaintenanceBed } from './maintenance-bed.ts'

let bed: MaintenanceBed
let folder = ''

beforeAll(async () => {
  bed = await openMaintenanceBed()
  folder = mkdtempSync(join(tmpdir(), 'fencepost-demo-test-'))
})

afterAll(async () => {
  await bed.close()
  rmSync(folder, { recursive: true, force: true })
})

test('the demo maintains every table of a reduced lake, and no row changes', async () => {
  const { engine, catalogs } = bed
  const seen: { examined: readonly ExaminedTable[]; last: readonly TableProgress[] } = { examined: [], last: [] }
  const { tables, isHealthy, failures } = await demonstrate({
    engine,
    catalogs,
    folder: join(folder, 'lake'),
    scale: 0.05,
    watcher: {
      making: () => {},
      examined: (all) => (seen.examined = all),
      maintaining: (all) => (seen.last = all),
    },
  })
  expect(failures).toEqual([])
  expect(isHealthy).toBe(true)
  expect(tables).toHaveLength(6)
  for (const { before, after } of tables) expect(after.proof).toEqual(before.proof)
  expect(seen.examined.filter(({ health }) => health.recommendedActions.length === 0)).toHaveLength(1)
  const actions = seen.last.flatMap((one) => one.actions)
  expect(actions.every(({ state }) => state === 'done')).toBe(true)
  expect(new Set(actions.map(({ action }) => action)).size).toBe(5)
}, 300_000)
