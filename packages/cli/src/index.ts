import type { Config } from './configuration/settings.ts'

export type { Config } from './configuration/settings.ts'

/** Gives the settings of `fencepost.config.ts` their types. */
export function defineConfig(config: Config): Config {
  return config
}
