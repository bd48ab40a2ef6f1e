import { routes } from '@fencepost/client'
import { version } from '@fencepost/engine'
import { endpoint, type Endpoint } from '../endpoint.ts'
import { openApiDocument } from './document.ts'
import { docsPage, pagePolicy, rootPage } from './page.ts'

/** The description of these endpoints, and of its own. */
export function descriptionEndpoints(endpoints: readonly Endpoint[]): readonly Endpoint[] {
  const all = [...endpoints.map(({ route }) => route), routes.openapi, routes.root, routes.docs]
  const document = openApiDocument(all, version)
  const page = docsPage(all, version)
  return [
    endpoint(routes.openapi, async () => ({ body: document })),
    endpoint(routes.root, async () => ({
      body: rootPage(version),
      headers: { 'content-security-policy': pagePolicy },
    })),
    endpoint(routes.docs, async () => ({ body: page, headers: { 'content-security-policy': pagePolicy } })),
  ]
}
