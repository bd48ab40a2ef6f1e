import { IcebergError } from '../errors.ts'
import type { Json } from '../json/json.ts'
import { ObjectReader } from '../json/object-reader.ts'
import type { Namespace, TableIdentifier } from './catalog.ts'

// A server says first what its paths begin with, what it can do and what holds for its clients. Defaults give way to
// what the caller set, overrides do not.

// What a server can do that does not say so.
const assumedEndpoints = [
  'GET /v1/{prefix}/namespaces',
  'GET /v1/{prefix}/namespaces/{namespace}',
  'POST /v1/{prefix}/namespaces',
  'DELETE /v1/{prefix}/namespaces/{namespace}',
  'GET /v1/{prefix}/namespaces/{namespace}/tables',
  'GET /v1/{prefix}/namespaces/{namespace}/tables/{table}',
  'POST /v1/{prefix}/namespaces/{namespace}/tables',
  'POST /v1/{prefix}/namespaces/{namespace}/tables/{table}',
  'DELETE /v1/{prefix}/namespaces/{namespace}/tables/{table}',
  'POST /v1/{prefix}/tables/rename',
  'POST /v1/{prefix}/namespaces/{namespace}/register',
]

export class RestConfig {
  readonly properties: Readonly<Record<string, string>>
  readonly #endpoints: ReadonlySet<string>
  readonly #separator: string

  constructor(answer: Json | undefined, given: Readonly<Record<string, string>>) {
    const reader = new ObjectReader(answer ?? {}, 'the configuration of the catalog')
    this.properties = {
      ...reader.optionalStrings('defaults'),
      ...given,
      ...reader.optionalStrings('overrides'),
    }
    const endpoints = reader.optionalArray('endpoints', textItem)
    this.#endpoints = new Set(endpoints === undefined || endpoints.length === 0 ? assumedEndpoints : endpoints)
    // It is given as it stands in a path, that is, encoded.
    this.#separator = this.properties['namespace-separator'] ?? '%1F'
  }

  supports(endpoint: string): boolean {
    return this.#endpoints.has(endpoint)
  }

  require(endpoint: string, what: string): void {
    if (this.supports(endpoint)) return
    throw new IcebergError('catalog_unsupported', `The catalog cannot ${what}: it does not offer ${endpoint}.`)
  }

  /** A path, with the prefix that the server wants, which it gives as it stands in a path. */
  path(...parts: readonly string[]): string {
    const { prefix } = this.properties
    return ['v1', ...(prefix === undefined || prefix === '' ? [] : [prefix]), ...parts].join('/')
  }

  namespacePath(namespace: Namespace, ...more: readonly string[]): string {
    return this.path('namespaces', checked(namespace).map(encodeURIComponent).join(this.#separator), ...more)
  }

  tablePath({ namespace, name }: TableIdentifier, ...more: readonly string[]): string {
    checked([name])
    return this.namespacePath(namespace, 'tables', encodeURIComponent(name), ...more)
  }

  /** A namespace as the value of a query parameter, before that is encoded. */
  parentText(namespace: Namespace): string {
    return checked(namespace).join(decodeURIComponent(this.#separator))
  }
}

/** An item of a list that must be text. */
export function textItem(item: Json, what: string): string {
  if (typeof item === 'string') return item
  throw new IcebergError('catalog_invalid', `${what} is not a text.`)
}

function checked(levels: readonly string[]): readonly string[] {
  // "." and ".." would be taken for steps in the path before they reach the server.
  if (levels.length === 0 || levels.some((level) => ['', '.', '..'].includes(level))) {
    throw new IcebergError('name_invalid', `"${levels.join('.')}" cannot name a namespace or table of a REST catalog.`)
  }
  return levels
}
