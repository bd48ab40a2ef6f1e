import { userInfo } from 'node:os'
import { roles } from '@fencepost/client'
import { createToken, listTokens, revokeToken } from '@fencepost/server'
import { command } from './command/command.ts'
import { CommandError } from './failure.ts'
import { table } from './output/table.ts'
import { openConfiguredEngine, type OpenedEngine } from './service/database.ts'
import { databaseSettings } from './service/running.ts'

const tokenSettings = [...databaseSettings, 'migrate'] as const

export const createTokenCommand = command({
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
  async run({ args, options, settings, output }) {
    const opened = await openConfiguredEngine(settings, output)
    await closing(opened, async ({ engine }) => {
      const made = await createToken(engine.database, { name: args.name, role: options.role }, whoami())
      output.answer(made, () => made.token)
      output.note(`Token ${made.token_id} for ${made.name}, ${made.role}. It is not shown again.`)
    })
  },
})

export const listTokensCommand = command({
  name: 'tokens list',
  summary: 'Lists the tokens, revoked ones too, without their secrets',
  settings: tokenSettings,
  async run({ settings, output }) {
    const opened = await openConfiguredEngine(settings, output)
    await closing(opened, async ({ engine }) => {
      const tokens = await listTokens(engine.database)
      const rows = tokens.map((one) => [
        one.token_id,
        one.name,
        one.role,
        one.created_at,
        one.last_used_at ?? 'never',
        one.revoked_at ?? '',
      ])
      output.answer(tokens, () =>
        rows.length === 0 ? 'No tokens.' : table(['TOKEN', 'NAME', 'ROLE', 'CREATED', 'LAST USED', 'REVOKED'], rows),
      )
    })
  },
})

export const revokeTokenCommand = command({
  name: 'tokens revoke',
  summary: 'Revokes a token: the next request with it is refused',
  arguments: { token_id: { description: 'The id of the token: 12 hexadecimal digits.' } },
  settings: tokenSettings,
  async run({ args, settings, output }) {
    const opened = await openConfiguredEngine(settings, output)
    await closing(opened, async ({ engine }) => {
      const tokenId = args.token_id
      const answer = await revokeToken(engine.database, tokenId, whoami())
      if (answer.revoked) {
        output.answer({ token_id: tokenId, revoked: true }, () => `Token ${tokenId} is revoked.`)
        return
      }
      throw answer.why === 'not_found'
        ? new CommandError('token_not_found', 'notFound', `There is no token ${tokenId}.`)
        : new CommandError('token_revoked', 'conflict', `Token ${tokenId} was already revoked.`)
    })
  },
})

async function closing(opened: OpenedEngine, work: (opened: OpenedEngine) => Promise<void>): Promise<void> {
  try {
    await work(opened)
  } finally {
    await opened.close()
  }
}

// There is no token to name who does this: it is whoever can reach the database.
function whoami(): string {
  try {
    return `cli:${userInfo().username}`
  } catch {
    return 'cli' // an account without a name, as containers have them
  }
}
