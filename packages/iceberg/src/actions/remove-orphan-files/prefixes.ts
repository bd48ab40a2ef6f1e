import { resolve } from 'node:path'

// Orphans are found by the path of a location, without its scheme and authority; those are compared afterwards. A file
// whose path the table refers to under another scheme or authority may be one that the table needs: bucket aliases, name
// services and moved tables look like that.

interface Uri {
  readonly scheme: string
  readonly authority: string
  readonly path: string
}

export interface Equalities {
  readonly equalSchemes: Readonly<Record<string, string>>
  readonly equalAuthorities: Readonly<Record<string, string>>
}

/** `same` is under the scheme and authority of the listing, or names none; `other` is under others. */
export interface ComparedPath {
  readonly path: string
  readonly prefix: 'same' | 'other'
}

/** Compares locations with those of a listing of one folder. */
export class Prefixes {
  readonly #schemes: ReadonlyMap<string, string>
  readonly #authorities: ReadonlyMap<string, string>
  readonly #listed: Uri
  readonly #rawPrefix: string

  constructor(listed: string, { equalSchemes, equalAuthorities }: Equalities) {
    this.#schemes = flattened({ 's3n,s3a': 's3', ...equalSchemes })
    this.#authorities = flattened(equalAuthorities)
    const parsed = this.#parse(listed)
    this.#listed = parsed.scheme === '' ? { ...parsed, scheme: 'file' } : parsed
    // Object stores take paths byte for byte, so that of most files is what follows the prefix of the listing.
    const raw = /^[a-z][a-z0-9+.-]*:\/\/[^/]*/i.exec(listed)?.[0] ?? ''
    this.#rawPrefix = this.#listed.scheme === 'file' ? '' : raw
  }

  /** The path of a file of the listing. */
  pathOf(listedFile: string): string {
    return this.compare(listedFile).path
  }

  compare(location: string): ComparedPath {
    const raw = this.#rawPrefix
    if (raw !== '' && location.startsWith(raw) && location.charCodeAt(raw.length) === 0x2f) {
      return { path: location.slice(raw.length), prefix: 'same' }
    }
    const { scheme, authority, path } = this.#parse(location)
    if (scheme === '') return { path: this.#listed.scheme === 'file' ? localPath(path) : path, prefix: 'same' }
    const isSame = scheme === this.#listed.scheme && (authority === '' || authority === this.#listed.authority)
    return { path, prefix: isSame ? 'same' : 'other' }
  }

  #parse(location: string): Uri {
    const match = /^([a-z][a-z0-9+.-]+):(?:\/\/([^/]*))?(.*)$/is.exec(location)
    // A plain path does not say which storage it is of.
    if (match === null) return { scheme: '', authority: '', path: location }
    const scheme = (match[1] ?? '').toLowerCase()
    const authority = match[2] ?? ''
    const path = match[3] ?? ''
    if (scheme === 'file') return { scheme, authority: '', path: localPath(path) }
    return {
      scheme: this.#schemes.get(scheme) ?? scheme,
      authority: this.#authorities.get(authority) ?? authority,
      path,
    }
  }
}

/** What the file system ignores: doubled slashes and dots. */
function localPath(path: string): string {
  return path.startsWith('/') && !/\/\/|\/\.|\/$/.test(path) ? path : resolve(path.replace(/^\/+/, '/'))
}

/** `{ 'a,b': 'c' }` by each name. */
function flattened(equal: Readonly<Record<string, string>>): Map<string, string> {
  const map = new Map<string, string>()
  for (const [names, name] of Object.entries(equal)) {
    for (const one of names.split(',')) map.set(one.trim(), name.trim())
  }
  return map
}
