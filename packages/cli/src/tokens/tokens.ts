import { userInfo } from 'node:os'
import { routes, type Role } from '@fencepost/client'
import type { EngineDatabase } from '@fencepost/engine'
import * as stored from '@fencepost/server'
import { CommandError, UsageError } from '../failure.ts'
import type { Output } from '../output/output.ts'
import { plain } from '../output/plain.ts'
import { table } from '../output/table.ts'
import { openConfiguredEngine } from '../service/database.ts'
import type { TokenSettings } from './commands.ts'

/** Makes a token and prints it. */
export async function createToken(name: string, role: Role, settings: TokenSettings, output: Output): Promise<void> {
  const checked = routes.createToken.body.safeParse({ name, role })
  if (!checked.success) {
    throw new UsageError(`The name cannot be used: ${checked.error.issues[0]?.message}.`, { command: 'tokens create' })
  }
  const made = await onDatabase(settings, output, (database) => stored.createToken(database, { name, role }, whoami()))
  output.answer(made, () => made.token)
  output.note(`Token ${made.token_id} for ${made.name}, ${made.role}. It is not shown again.`)
}

export async function listTokens(settings: TokenSettings, output: Output): Promise<void> {
  const tokens = await onDatabase(settings, output, (database) => stored.listTokens(database))
  const rows = tokens.map((one) => [
    one.token_id,
    plain(one.name),
    one.role,
    one.created_at,
    one.last_used_at ?? 'never',
    one.revoked_at ?? '',
  ])
  output.answer(tokens, () =>
    rows.length === 0 ? 'No tokens.' : table(['TOKEN', 'NAME', 'ROLE', 'CREATED', 'LAST USED', 'REVOKED'], rows),
  )
}

export async function revokeToken(tokenId: string, settings: TokenSettings, output: Output): Promise<void> {
  const answer = await onDatabase(settings, output, (database) => stored.revokeToken(database, tokenId, whoami()))
  if (answer.revoked) {
    output.answer({ token_id: tokenId, revoked: true }, () => `Token ${tokenId} is revoked.`)
    return
  }
  throw answer.why === 'not_found'
    ? new CommandError('token_not_found', 'notFound', `There is no token ${tokenId}.`)
    : new CommandError('token_revoked', 'conflict', `Token ${tokenId} was already revoked.`)
}

async function onDatabase<T>(
  settings: TokenSettings,
  output: Output,
  work: (database: EngineDatabase) => Promise<T>,
): Promise<T> {
  const { engine, close } = await openConfiguredEngine(settings, output)
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
