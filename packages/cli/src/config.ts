import { command } from './command/command.ts'
import { table } from './output/table.ts'
import { maskSecret, maskUrl } from './configuration/mask.ts'
import { resolveSetting } from './configuration/resolve.ts'
import { settingNames, settings, type Setting, type SettingName } from './configuration/settings.ts'

export const config = command({
  name: 'config',
  summary: 'Prints every setting with where it comes from, secrets masked',
  settings: settingNames,
  async run({ sources, output }) {
    const shown = settingNames.map((name) => {
      const { value, source } = resolveSetting(name, sources)
      return { setting: name, value: masked(name, value), source }
    })
    output.answer(shown, () =>
      table(
        ['SETTING', 'VALUE', 'SOURCE'],
        shown.map(({ setting, value, source }) => [setting, wordOf(value), output.style('dim', source)]),
      ),
    )
  },
})

function masked(name: SettingName, value: unknown): unknown {
  const setting: Setting = settings[name]
  if (typeof value !== 'string') return value ?? null
  if (setting.secret) return maskSecret(value)
  return setting.placeholder === 'url' ? maskUrl(value) : value
}

function wordOf(value: unknown): string {
  if (value === null) return '–'
  if (Array.isArray(value)) return value.join(', ')
  return typeof value === 'string' ? value : JSON.stringify(value)
}
