import { roles } from '@fencepost/client'
import { command } from '../command/command.ts'
import type { Settings } from '../configuration/settings.ts'
import { clientSettings } from '../connection.ts'
import { databaseSettings } from '../service/settings.ts'

const readSettings = [...databaseSettings, ...clientSettings] as const
const writeSettings = [...databaseSettings, 'migrate', ...clientSettings] as const
export type TokenSettings = Settings<(typeof readSettings)[number]> & { readonly migrate?: boolean }

const remote = {
  kind: 'boolean',
  description: 'Over the HTTP API, with the token of an admin, instead of on the database.',
} as const

export const createToken = command({
  name: 'tokens create',
  summary: 'Makes a token and shows it, this once; from the first one on, every request needs one',
  arguments: { name: { description: 'Who uses it; recorded in the events of what it changes.' } },
  options: {
    role: {
      kind: 'text',
      choices: roles,
      description:
        'viewer reads; operator submits, cancels, recovers and deletes too; admin does everything. The first is an admin’s.',
      default: 'viewer',
    },
    expiresInDays: {
      kind: 'integer',
      placeholder: 'days',
      description: 'How long it may be used; for ever if left out.',
      min: 1,
      max: 3650,
    },
    remote,
  },
  settings: writeSettings,
  run: async ({ args, options, settings, output }) =>
    (await import('./tokens.ts')).createToken({ ...args, ...options }, settings, output),
})

export const listTokens = command({
  name: 'tokens list',
  summary: 'Lists the tokens, revoked ones too, without their secrets',
  options: { remote },
  settings: readSettings,
  run: async ({ options, settings, output }) => (await import('./tokens.ts')).listTokens(options, settings, output),
})

export const revokeToken = command({
  name: 'tokens revoke',
  summary: 'Revokes a token: the next request with it is refused',
  arguments: { token_id: { description: 'The id of the token: 12 hexadecimal digits.' } },
  options: { remote },
  settings: writeSettings,
  run: async ({ args, options, settings, output }) =>
    (await import('./tokens.ts')).revokeToken(args.token_id, options, settings, output),
})
