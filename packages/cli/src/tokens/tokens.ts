import { userInfo } from 'node:os'
import { routes, type Role } from '@fencepost/client'
import type { EngineDatabase } from '@fencepost/engine'
import * as stored from '@fencepost/server'
import { connect } from '../connection.ts'
import { CommandError, UsageError } from '../failure.ts'
import type { Output } from '../output/output.ts'
import { plain } from '../output/plain.ts'
import { table } from '../output/table.ts'
import { openConfiguredEngine } from '../service/database.ts'
import type { TokenSettings } from './commands.ts'

const daySeconds = 86_400

interface Remote {
  remote: boolean
}

/** Makes a token and prints it. */
export async function createToken(
  { name, role, expiresInDays: days, remote }: Remote & { name: string; role: Role; expiresInDays: number | undefined },
  settings: TokenSettings,
  output: Output,
): Promise<void> {
  const wanted = { name, role, ...(days === undefined ? {} : { expires_in_seconds: days * daySeconds }) }
  const checked = routes.createToken.body.safeParse(wanted)
  if (!checked.success) {
    throw new UsageError(`The name cannot be used: ${checked.error.issues[0]?.message}.`, { command: 'tokens create' })
  }
  const made = remote
    ? await connect(settings).createToken(wanted)
    : await onDatabase(settings, output, async (database) => {
        // A viewer alone could not make the next one, and nobody would get in any more.
        if (role !== 'admin' && (await stored.countTokens(database)).all === 0) {
          throw new UsageError(
            'The first token must be an admin’s: from then on every call needs one. Give --role admin.',
            {
              command: 'tokens create',
            },
          )
        }
        return stored.createToken(database, wanted, whoami())
      })
  output.answer(made, () => made.token)
  const until = made.expires_at === null ? '' : ` until ${made.expires_at}`
  output.note(`Token ${made.token_id} for ${made.name}, ${made.role}${until}. It is not shown again.`)
}

export async function listTokens({ remote }: Remote, settings: TokenSettings, output: Output): Promise<void> {
  const tokens = remote
    ? await connect(settings).listTokens()
    : await onDatabase({ ...settings, migrate: false }, output, (database) => stored.listTokens(database))
  const rows = tokens.map((one) => [
    one.token_id,
    plain(one.name),
    one.role,
    one.created_at,
    one.last_used_at ?? 'never',
    one.expires_at ?? 'never',
    one.revoked_at ?? '',
  ])
  output.answer(tokens, () =>
    rows.length === 0
      ? 'No tokens.'
      : table(['TOKEN', 'NAME', 'ROLE', 'CREATED', 'LAST USED', 'EXPIRES', 'REVOKED'], rows),
  )
}

export async function revokeToken(
  tokenId: string,
  { remote }: Remote,
  settings: TokenSettings,
  output: Output,
): Promise<void> {
  if (remote) await connect(settings).revokeToken(tokenId)
  else requireRevoked(tokenId, await onDatabase(settings, output, (db) => stored.revokeToken(db, tokenId, whoami())))
  output.answer({ token_id: tokenId, revoked: true }, () => `Token ${tokenId} is revoked.`)
}

function requireRevoked(tokenId: string, answer: stored.Revoked): void {
  if (answer.revoked) return
  switch (answer.why) {
    case 'not_found':
      throw new CommandError('token_not_found', 'notFound', `There is no token ${tokenId}.`)
    case 'already_revoked':
      throw new CommandError('token_revoked', 'conflict', `Token ${tokenId} was already revoked.`)
    case 'last_admin':
      throw new CommandError(
        'token_last_admin',
        'conflict',
        `Token ${tokenId} is the last one of an admin. Make another one first: fencepost tokens create <name> --role admin.`,
      )
  }
}

async function onDatabase<T>(
  { migrate = true, ...settings }: TokenSettings,
  output: Output,
  work: (database: EngineDatabase) => Promise<T>,
): Promise<T> {
  const { engine, close } = await openConfiguredEngine({ ...settings, migrate }, output)
  try {
    return await work(engine.database)
  } finally {
    await close()
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
