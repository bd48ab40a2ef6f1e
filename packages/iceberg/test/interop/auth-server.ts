import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { pathToFileURL } from 'node:url'
import { installed } from '../../../../scripts/interop/install.mjs'
import { requireInstalled } from './server-process.ts'

/** An OAuth2 authorization server that is not ours, with one client that may have the scope `catalog`. */
export interface AuthServer {
  readonly tokenUrl: string
  readonly clientId: string
  readonly clientSecret: string
  /** How many tokens it has issued so far. */
  readonly issued: () => number
  /** Asks the server, as who is shown a token does (RFC 7662). */
  readonly isActive: (token: string) => Promise<boolean>
  readonly revokeAll: () => Promise<void>
  readonly close: () => Promise<void>
}

interface IssuedToken {
  destroy(): Promise<void>
}
interface Provider {
  callback(): RequestListener
  on(event: 'client_credentials.saved', listener: (token: IssuedToken) => void): void
}
type ProviderClass = new (issuer: string, configuration: object) => Provider

/** oidc-provider, whose tokens end after `lifeSeconds`. */
export async function startAuthServer({ lifeSeconds }: { readonly lifeSeconds: number }): Promise<AuthServer> {
  requireInstalled('auth', installed.authServer)
  const { default: OidcProvider } = (await import(pathToFileURL(installed.authServer).href)) as {
    default: ProviderClass
  }
  let answer: RequestListener = (_request, response) => void response.writeHead(503).end()
  const server = createServer((request, response) => answer(request, response))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const client = clientOf('engine')
  const gateway = clientOf('gateway')
  const provider = new OidcProvider(issuer, {
    clients: [client, gateway],
    scopes: ['catalog'],
    ttl: { ClientCredentials: lifeSeconds },
    features: {
      clientCredentials: { enabled: true },
      introspection: { enabled: true, allowedPolicy: () => true },
      devInteractions: { enabled: false },
    },
  })
  const issued: IssuedToken[] = []
  provider.on('client_credentials.saved', (token) => issued.push(token))
  answer = provider.callback()
  return {
    tokenUrl: `${issuer}/token`,
    clientId: client.client_id,
    clientSecret: client.client_secret,
    issued: () => issued.length,
    isActive: async (token) => {
      const { client_id, client_secret } = gateway
      const body = new URLSearchParams({ token, client_id, client_secret })
      const told = await fetch(`${issuer}/token/introspection`, { method: 'POST', body })
      return told.ok && ((await told.json()) as { active: boolean }).active
    },
    revokeAll: async () => {
      for (const token of issued) await token.destroy()
    },
    close: () => new Promise((resolve) => (server.closeAllConnections(), server.close(() => resolve()))),
  }
}

function clientOf(name: string) {
  return {
    client_id: name,
    client_secret: `${name}-secret-of-the-tests`,
    grant_types: ['client_credentials'],
    response_types: [],
    redirect_uris: [],
    token_endpoint_auth_method: 'client_secret_post',
    scope: 'catalog',
  }
}
