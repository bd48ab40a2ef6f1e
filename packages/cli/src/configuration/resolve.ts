import { checkValue, readText } from './value.ts'
import type { ConfigFile } from './config-file.ts'
import { settings, type Setting, type SettingName, type Settings } from './settings.ts'

/** Where a value comes from: a flag, a variable, the file, or the default. */
export type Source = `--${string}` | `$${string}` | `file ${string}` | 'default' | 'not set'

export interface Resolved {
  value: unknown
  source: Source
}

/** What values are taken from, the first first. */
export interface Sources {
  /** Flags that were given, by the name of their setting. */
  flags: Readonly<Record<string, { value: unknown; flag: string }>>
  env: Readonly<Record<string, string | undefined>>
  file: ConfigFile | undefined
}

/** One setting: flags over environment over file over default. */
export function resolveSetting(name: SettingName, sources: Sources): Resolved {
  const setting: Setting = settings[name]
  const flag = sources.flags[name]
  if (flag !== undefined) return { value: flag.value, source: `--${flag.flag}` }
  for (const variable of setting.env) {
    const text = sources.env[variable]
    // An empty variable is how compose files and CI systems spell one that is not set.
    if (text !== undefined && text !== '') return { value: readText(setting, text, variable), source: `$${variable}` }
  }
  const { file } = sources
  if (file !== undefined && Object.hasOwn(file.values, name)) {
    return { value: checkValue(setting, file.values[name], `${name} in ${file.name}`), source: `file ${file.name}` }
  }
  if (name === 'url') return { value: defaultUrl(sources), source: 'default' }
  return setting.default === undefined
    ? { value: undefined, source: 'not set' }
    : { value: setting.default, source: 'default' }
}

/** The values of these settings. */
export function resolveSettings<Name extends SettingName>(names: readonly Name[], sources: Sources): Settings<Name> {
  return Object.fromEntries(names.map((name) => [name, resolveSetting(name, sources).value])) as Settings<Name>
}

function defaultUrl(sources: Sources): string {
  return `http://127.0.0.1:${String(resolveSetting('port', sources).value)}`
}
