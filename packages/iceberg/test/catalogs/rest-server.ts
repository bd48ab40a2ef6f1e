import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import {
  IcebergError,
  parseJson,
  requirementFromJson,
  stringifyJson,
  tableMetadataToJson,
  updateFromJson,
  type Catalog,
  type Json,
  type LoadedTable,
  type TableIdentifier,
} from '../../src/index.ts'
import { isObject } from '../../src/json/object-reader.ts'

export interface RestServer {
  readonly url: string
  close(): Promise<void>
}

/** Serves the tables of a catalog by the REST protocol: loading them and committing to them. */
export async function openRestServer(behind: Catalog): Promise<RestServer> {
  async function answer(method: string, path: string, body: string): Promise<[status: number, body: Json]> {
    if (path === '/v1/config') return [200, {}]
    const [, namespace, name] = /^\/v1\/namespaces\/([^/]+)\/tables\/([^/]+)$/.exec(path) ?? []
    if (namespace === undefined || name === undefined) return failure(406, 'not served by the tests')
    const identifier: TableIdentifier = { namespace: [namespace], name }
    const table = await behind.loadTable(identifier)
    if (method === 'GET') return [200, described(table)]
    const request = parseJson(body)
    const list = (key: string): Json[] => {
      const items = isObject(request) ? request[key] : undefined
      return Array.isArray(items) ? items : []
    }
    const result = await behind.commit(table, {
      requirements: list('requirements').map(requirementFromJson),
      updates: list('updates').map(updateFromJson),
    })
    if (result.outcome === 'applied') return [200, described(result.table)]
    if (result.outcome === 'unknown') return failure(500, result.error.message)
    return failure(result.why === 'conflict' ? 409 : 400, result.error.message)
  }

  const server = createServer((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      const path = new URL(request.url ?? '', 'http://x').pathname
      void answer(request.method ?? '', path, Buffer.concat(chunks).toString())
        .catch((error: unknown) =>
          error instanceof IcebergError && error.code === 'table_not_found'
            ? failure(404, error.message)
            : failure(503, String(error)),
        )
        .then(([status, json]) => response.writeHead(status).end(stringifyJson(json)))
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close: () => new Promise((resolve) => (server.closeAllConnections(), server.close(() => resolve()))),
  }
}

function described({ metadata, metadataLocation }: LoadedTable): Json {
  return {
    metadata: tableMetadataToJson(metadata),
    ...(metadataLocation !== undefined && { 'metadata-location': metadataLocation }),
  }
}

function failure(code: number, message: string): [number, Json] {
  return [code, { error: { code, type: '', message } }]
}
