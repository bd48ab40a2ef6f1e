import { expect, test } from 'vitest'
import { effectiveSettings } from './health-settings.ts'

test('a table property comes before one of Iceberg’s, that before the settings, those before what is built in', () => {
  const properties = {
    'fencepost.target-file-size-bytes': '1000',
    'write.target-file-size-bytes': '2000',
    'history.expire.max-snapshot-age-ms': '86400000',
  }
  const { sources, values } = effectiveSettings(properties, { minInputFiles: 8, maxSnapshotAgeMs: 1 })
  expect(sources).toMatchObject({
    targetFileSizeBytes: { value: 1000, source: 'table property fencepost.target-file-size-bytes' },
    maxSnapshotAgeMs: { value: 86_400_000, source: 'table property history.expire.max-snapshot-age-ms' },
    minInputFiles: { value: 8, source: 'settings' },
    minPoints: { value: 5, source: 'built-in' },
  })
  expect(values.targetFileSizeBytes).toBe(1000)
})

test('a property that is no value is passed over and named', () => {
  const { sources, invalid } = effectiveSettings({ 'fencepost.min-input-files': 'many', 'fencepost.min-points': '500' })
  expect(sources.minInputFiles).toEqual({ value: 5, source: 'built-in' })
  expect(invalid).toEqual([
    { property: 'fencepost.min-input-files', value: 'many' },
    { property: 'fencepost.min-points', value: '500' },
  ])
})
