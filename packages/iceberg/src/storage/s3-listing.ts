import { ListObjectsV2Command, type ListObjectsV2CommandOutput, type S3Client } from '@aws-sdk/client-s3'
import { IcebergError } from '../errors.ts'
import { forEachLimited } from './each.ts'
import { sendOptions } from './s3-client.ts'
import { asFolder, prefixOf } from './s3-object.ts'
import type { ListedFile } from './storage.ts'

// S3 lists 1,000 keys per request, in the order of their bytes, and each request needs the answer before it. So a large
// folder is cut into ranges of keys that are listed side by side. The cuts are between folders, which some requests with
// a delimiter find; wherever they are, every key is in exactly one range, so only the speed hangs on them.
//
// Limit: many files directly in one folder are one range. A listing of one page costs one request, as ever; a longer one
// up to `maxProbes` and one for each range more than it would one after another.

const ranges = 8
const maxProbes = 16

type Page = ListObjectsV2CommandOutput
/** Sends one request for a page, and tells failures in the words of this package. */
export type SendPage = (command: ListObjectsV2Command) => Promise<Page>

interface Range {
  /** Keys after this one. */
  readonly after: string
  /** And not after this one; to the end without. */
  readonly upTo?: string
}

/** Every object below a folder, a page at a time, in no order. Ends with the reason of the signal. */
export async function* listPages(
  folder: string,
  send: SendPage,
  signal: AbortSignal | undefined,
): AsyncGenerator<ListedFile[], void> {
  for await (const page of pagesBelow(folder, send)) {
    yield page
    signal?.throwIfAborted()
  }
}

async function* pagesBelow(folder: string, send: SendPage): AsyncGenerator<ListedFile[]> {
  const first = await send(new ListObjectsV2Command(prefixOf(folder)))
  const keys = keysOf(folder, first)
  yield filesOf(folder, first)
  if (tokenOf(folder, first) === undefined) return
  const last = keys.at(-1)
  // Directory buckets, and servers that are not S3, need not sort: what is not sorted cannot be cut.
  if (last === undefined || !isSorted(keys)) {
    yield* pagesFrom(folder, send, first)
    return
  }
  const lanes = rangesAfter(last, await cutsAfter(folder, last, send)).map((range) => pagesOf(folder, range, send))
  yield* merged(lanes)
}

/** What comes after a page, one page after another. */
async function* pagesFrom(folder: string, send: SendPage, page: Page): AsyncGenerator<ListedFile[]> {
  for (let token = tokenOf(folder, page); token !== undefined;) {
    const next = await send(new ListObjectsV2Command({ ...prefixOf(folder), ContinuationToken: token }))
    yield filesOf(folder, next)
    token = tokenOf(folder, next)
  }
}

/** The pages of a range. Also right on a server that sorts and does not know StartAfter. */
async function* pagesOf(folder: string, range: Range, send: SendPage): AsyncGenerator<ListedFile[]> {
  let token: string | undefined
  let last: string | undefined
  do {
    const from = token === undefined ? { StartAfter: range.after } : { ContinuationToken: token }
    const page = await send(new ListObjectsV2Command({ ...prefixOf(folder), ...from }))
    const keys = keysOf(folder, page)
    if (!isSorted(last === undefined ? keys : [last, ...keys])) throw unsorted(folder)
    last = keys.at(-1) ?? last
    yield filesOf(folder, page, range)
    const isPast = range.upTo !== undefined && last !== undefined && compareKeys(last, range.upTo) > 0
    token = isPast ? undefined : tokenOf(folder, page)
  } while (token !== undefined)
}

/** Where folders end, after a key: at most as many as are useful. */
async function cutsAfter(folder: string, after: string, send: SendPage): Promise<string[]> {
  const { Bucket, Prefix } = prefixOf(folder)
  let level = [Prefix]
  let probes = 0
  const cuts: string[] = []
  while (level.length > 0 && probes < maxProbes && cuts.length < ranges * 4) {
    const below: string[] = []
    const asked = level.slice(0, maxProbes - probes)
    probes += asked.length
    await forEachLimited(asked, ranges, async (prefix) => {
      const command = new ListObjectsV2Command({ Bucket, Prefix: prefix, Delimiter: '/', StartAfter: after })
      for (const { Prefix: found } of (await send(command)).CommonPrefixes ?? []) if (found) below.push(found)
    })
    cuts.push(...below.filter((cut) => compareKeys(cut, after) > 0))
    level = below.toSorted(compareKeys)
  }
  return [...new Set(cuts)].toSorted(compareKeys)
}

/** At most `ranges` of them, of about as many cuts each. */
function rangesAfter(first: string, cuts: readonly string[]): Range[] {
  const count = Math.min(ranges, cuts.length + 1)
  const bounds = Array.from(
    { length: count - 1 },
    (_, n) => cuts[Math.floor(((n + 1) * cuts.length) / count)] as string,
  )
  const edges = [first, ...new Set(bounds)]
  return edges.map((after, n) => {
    const upTo = edges[n + 1]
    return upTo === undefined ? { after } : { after, upTo }
  })
}

/** Takes from all at once; what comes first is given first. */
async function* merged<T>(sources: readonly AsyncGenerator<T>[]): AsyncGenerator<T> {
  type Turn = { source: AsyncGenerator<T>; result: IteratorResult<T, unknown> }
  const next = async (source: AsyncGenerator<T>): Promise<Turn> => ({ source, result: await source.next() })
  const turn = (source: AsyncGenerator<T>): Promise<Turn> => {
    const begun = next(source)
    begun.catch(() => {}) // whoever waits for it sees the failure; until then it is not "unhandled"
    return begun
  }
  const turns = new Map(sources.map((source) => [source, turn(source)]))
  try {
    while (turns.size > 0) {
      const { source, result } = await Promise.race(turns.values())
      if (result.done === true) turns.delete(source)
      else {
        turns.set(source, turn(source))
        yield result.value
      }
    }
  } finally {
    // Requests that are under way end by themselves; nobody waits for their answers.
    for (const source of turns.keys()) source.return(undefined).catch(() => {})
  }
}

/** The names of the folders directly in one. */
export async function listFolders(folder: string, send: SendPage): Promise<string[]> {
  const { Bucket, Prefix } = prefixOf(folder)
  const names: string[] = []
  let token: string | undefined
  do {
    const more = token === undefined ? {} : { ContinuationToken: token }
    const page = await send(new ListObjectsV2Command({ Bucket, Prefix, Delimiter: '/', ...more }))
    for (const { Prefix: found } of page.CommonPrefixes ?? []) if (found) names.push(found.slice(Prefix.length, -1))
    token = tokenOf(folder, page)
  } while (token !== undefined)
  return names
}

/** The clock of the server, by the time it puts on an answer: in whole seconds, never later than it is. */
export async function serverTime(client: S3Client, folder: string, signal: AbortSignal | undefined): Promise<Date> {
  const command = new ListObjectsV2Command({ ...prefixOf(folder), MaxKeys: 1 })
  let date = Number.NaN
  command.middlewareStack.add(
    (next) => async (args) => {
      const answer = await next(args)
      const { headers = {} } = answer.response as { headers?: Record<string, string> }
      date = Date.parse(headers['date'] ?? '')
      return answer
    },
    { step: 'deserialize', name: 'serverTime' },
  )
  await client.send(command, sendOptions(signal))
  if (!Number.isNaN(date)) return new Date(date)
  throw new IcebergError('storage_failed', `The S3 server of ${folder} does not say what time it is.`, {
    details: { location: folder },
  })
}

function keysOf(folder: string, { Contents = [] }: Page): string[] {
  return Contents.map(({ Key }) => {
    if (Key === undefined) throw badPage(folder)
    return Key
  })
}

function filesOf(folder: string, { Contents = [] }: Page, range?: Range): ListedFile[] {
  const { Prefix } = prefixOf(folder)
  const below = asFolder(folder)
  const files: ListedFile[] = []
  for (const { Key, Size, LastModified } of Contents) {
    if (Key === undefined || LastModified === undefined || Size === undefined) throw badPage(folder)
    if (range !== undefined && !isIn(range, Key)) continue
    // What other tools put there to have a folder to show.
    if (Key.endsWith('/')) continue
    files.push({ location: below + Key.slice(Prefix.length), size: Size, modifiedAt: LastModified })
  }
  return files
}

function tokenOf(folder: string, { IsTruncated, NextContinuationToken }: Page): string | undefined {
  if (IsTruncated !== true) return undefined
  if (NextContinuationToken === undefined) throw badPage(folder)
  return NextContinuationToken
}

function isIn({ after, upTo }: Range, key: string): boolean {
  return compareKeys(key, after) > 0 && (upTo === undefined || compareKeys(key, upTo) <= 0)
}

function isSorted(keys: readonly string[]): boolean {
  return keys.every((key, n) => n === 0 || compareKeys(keys[n - 1] as string, key) < 0)
}

/** By their bytes in UTF-8, as S3 sorts. */
function compareKeys(a: string, b: string): number {
  return Buffer.compare(Buffer.from(a), Buffer.from(b))
}

function badPage(folder: string): IcebergError {
  return new IcebergError('storage_failed', `S3 answered a damaged page of the listing of ${folder}.`, {
    details: { location: folder },
  })
}

function unsorted(folder: string): IcebergError {
  return new IcebergError('storage_failed', `The S3 server does not list ${folder} in the order of its keys.`, {
    details: { location: folder },
  })
}
