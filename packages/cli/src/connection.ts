import { createClient, type Client } from '@fencepost/client'
import type { Settings } from './configuration/settings.ts'
import { UsageError } from './failure.ts'

/** The settings of commands that talk to a server. */
export const clientSettings = ['url', 'token', 'timeoutMs'] as const

export function connect({ url, token, timeoutMs }: Settings<(typeof clientSettings)[number]>): Client {
  if (url === undefined || !/^https?:/.test(url) || !URL.canParse(url)) {
    throw new UsageError(`${JSON.stringify(url)} is not the address of a server; give http://host:port.`)
  }
  return createClient({ url, token, timeoutMs })
}
