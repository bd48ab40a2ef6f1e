// A value comes from the first that has one: the table's property `fencepost.*`, a property of Iceberg's that says the
// same, the settings of the service, what is built in. Where files are deleted by it, the more cautious of both properties.

interface Setting {
  readonly property: string
  /** A property of Iceberg's that says the same. */
  readonly icebergProperty?: string
  readonly builtIn: number
  readonly min: number
  readonly max?: number
  /** Of what the table's own properties say, the largest is taken: what is deleted cannot be brought back. */
  readonly takesLargest?: boolean
  readonly isFraction?: boolean
  readonly meaning: string
}

const dayMs = 86_400_000

export const healthSettings = {
  targetFileSizeBytes: {
    property: 'fencepost.target-file-size-bytes',
    icebergProperty: 'write.target-file-size-bytes',
    builtIn: 512 * 1024 ** 2,
    min: 1_024,
    meaning: 'How large data files should be.',
  },
  minInputFiles: {
    property: 'fencepost.min-input-files',
    builtIn: 5,
    min: 2,
    meaning: 'So many small files of one partition are worth rewriting.',
  },
  deleteRatioThreshold: {
    property: 'fencepost.delete-ratio-threshold',
    builtIn: 0.3,
    min: 0.000_001,
    max: 1,
    isFraction: true,
    meaning: 'A data file of which this share of rows is deleted is worth rewriting.',
  },
  maxDeletePoints: {
    property: 'fencepost.max-delete-points',
    builtIn: 15,
    min: 0,
    max: 100,
    isFraction: true,
    meaning:
      'When deletes cost more points than this after the cheaper actions, every data file with deletes is rewritten.',
  },
  minPoints: {
    property: 'fencepost.min-points',
    builtIn: 5,
    min: 0,
    max: 100,
    isFraction: true,
    meaning: 'An action that rewrites files is recommended when it saves so many points.',
  },
  maxSnapshotAgeMs: {
    property: 'fencepost.max-snapshot-age-ms',
    icebergProperty: 'history.expire.max-snapshot-age-ms',
    builtIn: 5 * dayMs,
    min: 0,
    takesLargest: true,
    meaning: 'Older snapshots may go.',
  },
  minSnapshotsToKeep: {
    property: 'fencepost.min-snapshots-to-keep',
    icebergProperty: 'history.expire.min-snapshots-to-keep',
    builtIn: 1,
    min: 1,
    takesLargest: true,
    meaning: 'Snapshots of each branch that stay whatever their age.',
  },
  minExpiredSnapshots: {
    property: 'fencepost.min-expired-snapshots',
    builtIn: 10,
    min: 1,
    meaning: 'Expiring is recommended when so many snapshots would go.',
  },
  orphanAgeMs: {
    property: 'fencepost.orphan-age-ms',
    builtIn: 3 * dayMs,
    min: dayMs,
    meaning: 'Files that no snapshot knows may go when they are older.',
  },
} as const satisfies Record<string, Setting>

export type HealthSetting = keyof typeof healthSettings
export type HealthSettings = Readonly<Record<HealthSetting, number>>

export interface EffectiveSetting {
  readonly value: number
  /** Where it comes from: `table property <name>`, `settings` or `built-in`. */
  readonly source: string
}

export interface EffectiveSettings {
  readonly values: HealthSettings
  readonly sources: Readonly<Record<HealthSetting, EffectiveSetting>>
  /** Properties of the table that are not values of their setting, and were passed over. */
  readonly invalid: readonly { readonly property: string; readonly value: string }[]
}

/** The value of each setting for a table, with its source. */
export function effectiveSettings(
  properties: Readonly<Record<string, string>>,
  global: Partial<HealthSettings> = {},
): EffectiveSettings {
  const invalid: { property: string; value: string }[] = []
  const sources = mapSettings((name, setting) => {
    const said: EffectiveSetting[] = []
    for (const property of [setting.property, setting.icebergProperty]) {
      const text = property === undefined ? undefined : properties[property]
      if (property === undefined || text === undefined) continue
      const value = valueOf(text, setting)
      if (value === undefined) invalid.push({ property, value: text })
      else said.push({ value, source: `table property ${property}` })
    }
    const largest = said.toSorted((a, b) => b.value - a.value)
    const own = (setting.takesLargest ? largest : said)[0]
    const value = global[name]
    return own ?? (value === undefined ? { value: setting.builtIn, source: 'built-in' } : { value, source: 'settings' })
  })
  return { values: mapSettings((name) => sources[name].value), sources, invalid }
}

/** Undefined for a text that is no value of the setting. Java's largest long says "for ever", and so does ours. */
function valueOf(text: string, { min, max, isFraction = false }: Setting): number | undefined {
  const number = text.trim() === '' ? Number.NaN : Number(text)
  if (!(number >= min && number <= (max ?? Number.POSITIVE_INFINITY))) return undefined
  if (!isFraction && !Number.isInteger(number)) return undefined
  return Math.min(number, Number.MAX_SAFE_INTEGER)
}

/** The time before which things are older than a setting says; at the earliest the beginning of time. */
export function before(now: Date, ageMs: number): Date {
  return new Date(Math.max(0, now.getTime() - ageMs))
}

function mapSettings<T>(of: (name: HealthSetting, setting: Setting) => T): Record<HealthSetting, T> {
  const entries = Object.entries(healthSettings) as [HealthSetting, Setting][]
  return Object.fromEntries(entries.map(([name, setting]) => [name, of(name, setting)])) as Record<HealthSetting, T>
}
