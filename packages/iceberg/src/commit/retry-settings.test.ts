import { expect, test } from 'vitest'
import { pauseMs, retrySettingsOf } from './retry-settings.ts'

test('pauses between tries follow the properties of the table', () => {
  const properties = {
    'commit.retry.num-retries': '7',
    'commit.retry.min-wait-ms': '10',
    'commit.retry.max-wait-ms': '35',
    'commit.retry.total-timeout-ms': '1000',
  }
  const settings = retrySettingsOf({ properties })
  expect(settings).toMatchObject({ retries: 7, minWaitMs: 10, maxWaitMs: 35, totalMs: 1000 })
  expect([1, 2, 3, 9].map((n) => pauseMs(settings, n, () => 1))).toEqual([10, 20, 35, 35])
  expect(pauseMs(settings, 1, () => 0)).toBe(5)
  expect(retrySettingsOf({ properties: { 'commit.retry.num-retries': 'many' } })).toEqual({
    retries: 4,
    minWaitMs: 100,
    maxWaitMs: 60_000,
    totalMs: 1_800_000,
    statusCheck: { retries: 3, minWaitMs: 1000, maxWaitMs: 60_000, totalMs: 1_800_000 },
  })
  const checked = { 'commit.status-check.num-retries': '1', 'commit.status-check.total-timeout-ms': '9' }
  expect(retrySettingsOf({ properties: checked }).statusCheck).toMatchObject({ retries: 1, totalMs: 9 })
})
