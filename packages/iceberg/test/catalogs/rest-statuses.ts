import { createServer, type IncomingHttpHeaders } from 'node:http'
import type { AddressInfo } from 'node:net'

export interface Asked {
  method: string
  path: string
  query: URLSearchParams
  headers: IncomingHttpHeaders
  body: string
}

export type Answer = { status: number; body?: unknown; text?: string; headers?: Record<string, string> } | 'reset'

export interface StatusServer {
  url: string
  asked: Asked[]
  close(): Promise<void>
}

/** Answers what it is told to. Not a catalog: it forces statuses and orders that a real one gives only by chance. */
export async function openStatusServer(answer: (asked: Asked, n: number) => Answer): Promise<StatusServer> {
  const asked: Asked[] = []
  const server = createServer((request, response) => {
    let body = ''
    request.setEncoding('utf8')
    request.on('data', (text: string) => (body += text))
    request.on('end', () => {
      const { pathname, searchParams } = new URL(request.url ?? '', 'http://x')
      const one = { method: request.method ?? '', path: pathname, query: searchParams, headers: request.headers, body }
      asked.push(one)
      const what = answer(one, asked.length)
      if (what === 'reset') return void request.socket.destroy()
      const text = what.text ?? (what.body === undefined ? '' : JSON.stringify(what.body))
      return void response.writeHead(what.status, what.headers).end(text)
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    asked,
    close: () => new Promise((resolve) => (server.closeAllConnections(), server.close(() => resolve()))),
  }
}
