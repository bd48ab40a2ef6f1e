import type { ListObjectsV2Command, ListObjectsV2CommandOutput } from '@aws-sdk/client-s3'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { listPages, type SendPage } from './s3-listing.ts'

const pageKeys = 10
const byBytes = (a: string, b: string): number => Buffer.compare(Buffer.from(a), Buffer.from(b))

interface Server {
  send: SendPage
  requests: number
}

/** Answers as S3 does, in small pages. Of others: not sorted, or without StartAfter. */
function serverOf(keys: readonly string[], { sorts = true, startsAfter = true } = {}): Server {
  const all = sorts ? keys.toSorted(byBytes) : keys
  const server: Server = {
    requests: 0,
    send: async (command: ListObjectsV2Command) => {
      server.requests += 1
      const { Prefix = '', Delimiter, ContinuationToken } = command.input
      // A token knows what the first request asked for.
      const token = JSON.parse(ContinuationToken ?? '{}') as { after?: string; from?: number }
      const { after = command.input.StartAfter ?? '', from = 0 } = token
      const entries: { key: string; common: boolean }[] = []
      for (const key of all.filter((k) => k.startsWith(Prefix))) {
        if (startsAfter && sorts && byBytes(key, after) <= 0) continue
        const end = Delimiter === undefined ? -1 : key.indexOf(Delimiter, Prefix.length)
        const entry = end === -1 ? { key, common: false } : { key: key.slice(0, end + 1), common: true }
        if (entries.at(-1)?.key !== entry.key) entries.push(entry)
      }
      const page = entries.slice(from, from + pageKeys)
      const isTruncated = entries.length > from + pageKeys
      return {
        $metadata: {},
        Contents: page
          .filter((e) => !e.common)
          .map(({ key }) => ({ Key: key, Size: key.length, LastModified: new Date(0) })),
        CommonPrefixes: page.filter((e) => e.common).map(({ key }) => ({ Prefix: key })),
        IsTruncated: isTruncated,
        ...(isTruncated && { NextContinuationToken: JSON.stringify({ after, from: from + pageKeys }) }),
      } satisfies ListObjectsV2CommandOutput
    },
  }
  return server
}

async function listed({ send }: Server): Promise<string[]> {
  const found: string[] = []
  for await (const page of listPages('s3://b/t', send, undefined)) found.push(...page.map((f) => f.location))
  return found
}

const name = fc.constantFrom('a', 'b', 'ä', 'ﬀ', '😀', 'data', '0', '-', '.', 'day=1')
const keySets = fc.uniqueArray(
  fc.array(name, { minLength: 1, maxLength: 5 }).map((parts) => `t/${parts.join('/')}`),
  { minLength: 1, maxLength: 150, size: 'max' },
)

describe('a listing in ranges', () => {
  test('has every key once, whatever the keys are and whether the server knows StartAfter', async () => {
    await fc.assert(
      fc.asyncProperty(keySets, fc.boolean(), async (keys, startsAfter) => {
        const server = serverOf(keys, { startsAfter })
        const locations = await listed(server)
        expect(locations.toSorted()).toEqual(keys.map((key) => `s3://b/${key}`).toSorted())
        if (startsAfter) expect(server.requests).toBeLessThanOrEqual(Math.ceil(keys.length / pageKeys) + 16 + 8)
      }),
      { numRuns: 100 },
    )
  })

  test('compares keys by their bytes, as S3 sorts them', async () => {
    // In UTF-16 the emoji comes before the ligature.
    const keys = ['a', 'ﬀ', '😀'].flatMap((part) => Array.from({ length: 30 }, (_, n) => `t/${part}/${n}`))
    expect((await listed(serverOf(keys))).toSorted()).toEqual(keys.map((key) => `s3://b/${key}`).toSorted())
  })

  test('of one page is one request', async () => {
    const server = serverOf(Array.from({ length: pageKeys }, (_, n) => `t/${n % 3}/${n}`))
    expect(await listed(server)).toHaveLength(pageKeys)
    expect(server.requests).toBe(1)
  })

  test('that is not sorted is taken one page after another', async () => {
    const keys = Array.from({ length: 55 }, (_, n) => `t/${(n * 37) % 55}/f`)
    const server = serverOf(keys, { sorts: false })
    expect((await listed(server)).toSorted()).toEqual(keys.map((key) => `s3://b/${key}`).toSorted())
    expect(server.requests).toBe(6)
  })

  test('is side by side: ranges are asked for before others are answered', async () => {
    const server = serverOf(Array.from({ length: 400 }, (_, n) => `t/p=${String(n % 20).padStart(2, '0')}/${n}`))
    let [underWay, most] = [0, 0]
    const send: SendPage = async (command) => {
      most = Math.max(most, (underWay += 1))
      await new Promise(setImmediate)
      underWay -= 1
      return server.send(command)
    }
    expect(await listed({ ...server, send })).toHaveLength(400)
    expect(most).toBe(8)
  })

  test('ends with the failure of any range', async () => {
    const server = serverOf(Array.from({ length: 400 }, (_, n) => `t/p=${n % 20}/${n}`))
    const send: SendPage = (command) => {
      if (server.requests > 15) throw new Error('the network broke')
      return server.send(command)
    }
    await expect(listed({ ...server, send })).rejects.toThrow('the network broke')
  })
})
