import { roles } from '@fencepost/client'
import { command } from '../command/command.ts'
import type { Settings } from '../configuration/settings.ts'
import { databaseSettings } from '../service/settings.ts'

const tokenSettings = [...databaseSettings, 'migrate'] as const
export type TokenSettings = Settings<(typeof tokenSettings)[number]>

export const createToken = command({
  name: 'tokens create',
  summary: 'Makes a token and shows it, this once; from the first one on, every request needs one',
  arguments: { name: { description: 'Who uses it; recorded in the events of what it changes.' } },
  options: {
    role: {
      kind: 'text',
      choices: roles,
      description: 'viewer reads; operator submits, cancels, recovers and deletes too; admin does everything.',
      default: 'viewer',
    },
  },
  settings: tokenSettings,
  run: async ({ args, options, settings, output }) =>
    (await import('./tokens.ts')).createToken(args.name, options.role, settings, output),
})

export const listTokens = command({
  name: 'tokens list',
  summary: 'Lists the tokens, revoked ones too, without their secrets',
  settings: tokenSettings,
  run: async ({ settings, output }) => (await import('./tokens.ts')).listTokens(settings, output),
})

export const revokeToken = command({
  name: 'tokens revoke',
  summary: 'Revokes a token: the next request with it is refused',
  arguments: { token_id: { description: 'The id of the token: 12 hexadecimal digits.' } },
  settings: tokenSettings,
  run: async ({ args, settings, output }) => (await import('./tokens.ts')).revokeToken(args.token_id, settings, output),
})
