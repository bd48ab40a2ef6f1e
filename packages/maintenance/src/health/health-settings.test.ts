import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { before, effectiveSettings, healthSettings } from './health-settings.ts'

test('a table property comes before one of Iceberg’s, that before the settings, those before what is built in', () => {
  const properties = {
    'fencepost.target-file-size-bytes': '100000',
    'write.target-file-size-bytes': '2000',
    'history.expire.max-snapshot-age-ms': '86400000',
  }
  const { sources, values } = effectiveSettings(properties, { minInputFiles: 8, maxSnapshotAgeMs: 1 })
  expect(sources).toMatchObject({
    targetFileSizeBytes: { value: 100_000, source: 'table property fencepost.target-file-size-bytes' },
    maxSnapshotAgeMs: { value: 86_400_000, source: 'table property history.expire.max-snapshot-age-ms' },
    minInputFiles: { value: 8, source: 'settings' },
    minPoints: { value: 5, source: 'built-in' },
  })
  expect(values.targetFileSizeBytes).toBe(100_000)
})

test('of two retentions the longer one is taken, and Java’s largest long means for ever', () => {
  const days = (count: number) => String(count * 86_400_000)
  const ageOf = (ours: string, icebergs: string) =>
    effectiveSettings({ 'fencepost.max-snapshot-age-ms': ours, 'history.expire.max-snapshot-age-ms': icebergs }).values
      .maxSnapshotAgeMs
  expect(ageOf(days(30), days(1))).toBe(30 * 86_400_000)
  expect(ageOf(days(1), days(30))).toBe(30 * 86_400_000)
  const never = ageOf(days(1), '9223372036854775807')
  expect(never).toBe(Number.MAX_SAFE_INTEGER)
  expect(before(new Date('2026-01-01'), never)).toEqual(new Date(0))
})

test('a property that is no value is passed over and named', () => {
  const { sources, invalid } = effectiveSettings({ 'fencepost.min-input-files': 'many', 'fencepost.min-points': '500' })
  expect(sources.minInputFiles).toEqual({ value: 5, source: 'built-in' })
  expect(invalid).toEqual([
    { property: 'fencepost.min-input-files', value: 'many' },
    { property: 'fencepost.min-points', value: '500' },
  ])
})

test('docs/guides/health.md lists exactly the settings, with property, default and meaning', () => {
  const page = readFileSync(new URL('../../../../docs/guides/health.md', import.meta.url), 'utf8')
  const rows = page
    .slice(page.indexOf('\n## Settings\n'))
    .split('\n')
    .filter((line) => line.startsWith('|'))
    .slice(2)
    .map((line) =>
      line
        .split('|')
        .slice(1, -1)
        .map((cell) => cell.trim()),
    )
  expect(rows).toEqual(
    Object.entries(healthSettings).map(([name, setting]) => [
      `\`${name}\``,
      `\`${setting.property}\``,
      'icebergProperty' in setting ? `\`${setting.icebergProperty}\`` : '–',
      String(setting.builtIn),
      setting.meaning,
    ]),
  )
})
