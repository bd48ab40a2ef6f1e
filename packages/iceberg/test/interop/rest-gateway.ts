import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

interface GatewayOptions {
  /** Of the catalog behind it. */
  readonly uri: string
  /** Whether a bearer token is good now. Default: nobody is asked for one. */
  readonly admits?: (token: string) => Promise<boolean>
  /** What is handed out with every table, and by itself at `/credentials`. Default: nothing. */
  readonly vends?: () => Readonly<Record<string, string>>
}

export interface RestGateway {
  readonly uri: string
  /** Statuses of the answers, in order, with what was asked. */
  readonly answered: readonly string[]
  readonly close: () => Promise<void>
}

const credentialsEndpoint = 'GET /v1/{prefix}/namespaces/{namespace}/tables/{table}/credentials'

/** Stands before a catalog that asks nobody for a token and whose keys never end, and does both in its place. */
export async function openGateway({ uri, admits, vends }: GatewayOptions): Promise<RestGateway> {
  const answered: string[] = []
  const vended = (): string => JSON.stringify([{ prefix: 's3', config: vends?.() }])

  async function answer(request: Request): Promise<Response> {
    const { pathname, search } = new URL(request.url)
    const token = /^Bearer (.*)$/.exec(request.headers.get('authorization') ?? '')?.[1] ?? ''
    if (admits !== undefined && !(await admits(token))) {
      const error = { code: 401, type: 'NotAuthorizedException', message: 'this token is not good' }
      return Response.json({ error }, { status: 401 })
    }
    if (vends !== undefined && pathname.endsWith('/credentials')) {
      return new Response(`{"storage-credentials":${vended()}}`)
    }
    const body = request.method === 'POST' ? await request.text() : null
    const headers = { 'content-type': 'application/json' }
    const given = await fetch(`${uri}${pathname}${search}`, { method: request.method, headers, body })
    let text = await given.text()
    // As text: parsing it would cut ids of 64 bits.
    if (vends !== undefined && given.ok) {
      if (pathname === '/v1/config') text = text.replace('"endpoints":[', `"endpoints":["${credentialsEndpoint}",`)
      if (text.startsWith('{"metadata-location"')) text = `{"storage-credentials":${vended()},${text.slice(1)}`
    }
    return new Response([204, 304].includes(given.status) ? null : text, { status: given.status })
  }

  const server = createServer((incoming, outgoing) => {
    const chunks: Buffer[] = []
    incoming.on('data', (chunk: Buffer) => chunks.push(chunk))
    incoming.on('end', () => {
      const headers = new Headers(Object.entries(incoming.headers).map(([name, value]) => [name, String(value)]))
      const method = incoming.method ?? ''
      const body = method === 'POST' ? Buffer.concat(chunks) : null
      void answer(new Request(`http://gateway${incoming.url}`, { method, headers, body }))
        .catch((error: unknown) => new Response(String(error), { status: 500 }))
        .then(async (given) => {
          answered.push(`${given.status} ${method} ${incoming.url?.split('?')[0]}`)
          outgoing.writeHead(given.status, { 'content-type': 'application/json' }).end(await given.text())
        })
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    uri: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    answered,
    close: () => new Promise((resolve) => (server.closeAllConnections(), server.close(() => resolve()))),
  }
}
