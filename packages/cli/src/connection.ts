import { createClient, type Client } from '@fencepost/client'
import type { Settings } from './configuration/settings.ts'
import { maskUrl } from './configuration/mask.ts'
import { UsageError } from './failure.ts'

/** The settings of commands that talk to a server. */
export const clientSettings = ['url', 'token', 'timeoutMs'] as const

export function connect({ url, token, timeoutMs }: Settings<(typeof clientSettings)[number]>): Client {
  const parsed = url !== undefined && /^https?:/.test(url) && URL.canParse(url) ? new URL(url) : undefined
  if (url === undefined || parsed === undefined) {
    throw new UsageError(
      `${JSON.stringify(url === undefined ? '' : maskUrl(url))} is not the address of a server; give http://host:port.`,
    )
  }
  if (parsed.username !== '' || parsed.password !== '') {
    throw new UsageError(`--url ${maskUrl(url)} holds a user or password. Give a token instead: FENCEPOST_TOKEN.`)
  }
  return createClient({ url, token, timeoutMs })
}
