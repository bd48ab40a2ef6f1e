import { join } from 'node:path'
import { installed } from '../../../../scripts/interop/install.mjs'
import { s3Properties, type S3Server } from './s3-server.ts'
import { freePort, requireInstalled, startInFolder, startServer } from './server-process.ts'
import type { ServerProcess } from './server-process.ts'

export interface RestCatalogServer extends ServerProcess {
  readonly uri: string
}

interface RestCatalogOptions {
  /** Where tables without a location of their own go: `file:///…`, or `s3://…` together with `s3`. */
  readonly warehouse: string
  readonly s3?: S3Server
  /** Hands the S3 keys to those who load a table: the vended credentials of the protocol. */
  readonly vendCredentials?: boolean
  /** Any other catalog property of Iceberg's, by its name. */
  readonly properties?: Readonly<Record<string, string>>
}

/**
 * Iceberg's own REST catalog server (the one that its compatibility tests run against), with a JDBC catalog on SQLite
 * behind it. Limit: it cannot be told to listen on the loopback only, and it asks nobody for a password.
 */
export async function startRestCatalog(options: RestCatalogOptions): Promise<RestCatalogServer> {
  requireInstalled('rest-catalog', join(installed.restCatalogJars, '.installed'))
  return startInFolder('rest-catalog', async (folder) => {
    const port = await freePort()
    const uri = `http://127.0.0.1:${port}`
    const properties = {
      'rest.port': String(port),
      uri: `jdbc:sqlite:${join(folder, 'catalog.db')}`,
      warehouse: options.warehouse,
      ...(options.s3 === undefined
        ? {}
        : { 'io-impl': 'org.apache.iceberg.aws.s3.S3FileIO', ...s3Properties(options.s3) }),
      ...(options.vendCredentials === true ? { 'include-credentials': 'true' } : {}),
      ...options.properties,
    }
    const server = await startServer({
      name: "Iceberg's REST catalog server",
      command: 'java',
      args: ['-Xmx512m', '-cp', join(installed.restCatalogJars, '*'), 'org.apache.iceberg.rest.RESTCatalogServer'],
      env: Object.fromEntries(Object.entries(properties).map(([name, value]) => [environmentName(name), value])),
      url: `${uri}/v1/config`,
    })
    return { ...server, uri }
  })
}

// The server makes `io-impl` of CATALOG_IO__IMPL and `rest.port` of CATALOG_REST_PORT.
function environmentName(property: string): string {
  return `CATALOG_${property.replaceAll('-', '__').replaceAll('.', '_').toUpperCase()}`
}
